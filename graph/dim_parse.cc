#include <cctype>

#include <charconv>
#include "sinter/graph/strings.h"
#include "sinter/graph/dim.h"
#include "sinter/graph/error.h"

namespace sinter {
namespace {

// sum := ['-'] product (('+' | '-') product)*; product := factor ('*' factor)*; factor := number | name | call | '(' sum ')'
class DimParser {
 public:
  DimParser(std::string_view text, const std::function<Dim(std::string_view)>& lookup) : text_(text), lookup_(lookup) {}

  Dim Parse() {
    if (text_.size() > 1 << 16) Fail("is too long");
    Dim d = Sum(0);
    Skip();
    if (at_ != text_.size()) Fail("has something after its end");
    return d;
  }

 private:
  [[noreturn]] void Fail(std::string_view problem) {
    throw Error(ErrorCode::kInvalidArgument, StrCat("the size '", text_.substr(0, 80), "' ", problem, " (at character ", at_, ")"));
  }
  void Skip() { while (at_ < text_.size() && text_[at_] == ' ') ++at_; }
  bool Take(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Dim Sum(int depth) {
    if (depth > 64) Fail("is nested too deeply");
    Dim total = Take('-') ? -Product(depth) : Product(depth);
    for (;;) {
      if (Take('+')) total = total + Product(depth);
      else if (Take('-')) total = total - Product(depth);
      else return total;
    }
  }
  Dim Product(int depth) {
    Dim p = Factor(depth);
    while (Take('*')) p = p * Factor(depth);
    return p;
  }
  Dim Factor(int depth) {
    Skip();
    if (Take('(')) {
      Dim d = Sum(depth + 1);
      if (!Take(')')) Fail("lacks a ')'");
      return d;
    }
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.')) ++at_;
    std::string_view word = text_.substr(start, at_ - start);
    if (word.empty()) Fail("lacks a number or a name");
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      int64_t v = 0;
      auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), v);
      if (fault != std::errc() || end != word.data() + word.size()) Fail("has a bad number");
      return Dim(v);
    }
    if (word == "floordiv" || word == "mod" || word == "min" || word == "max") return Call(word, depth);
    return lookup_(word);
  }
  Dim Call(std::string_view name, int depth) {
    if (!Take('(')) Fail("lacks a '('");
    Dim r = Sum(depth + 1);
    int count = 1;
    while (Take(',')) {
      Dim b = Sum(depth + 1);
      r = name == "floordiv" ? FloorDiv(r, b) : name == "mod" ? Mod(r, b) : name == "min" ? Min(r, b) : Max(r, b);
      ++count;
    }
    if (!Take(')')) Fail("lacks a ')'");
    if (count < 2 || ((name == "floordiv" || name == "mod") && count != 2)) Fail("has a call with a wrong number of operands");
    return r;
  }

  std::string_view text_;
  const std::function<Dim(std::string_view)>& lookup_;
  size_t at_ = 0;
};

}  // namespace

Dim Dim::Parse(std::string_view text, const std::function<Dim(std::string_view name)>& lookup) { return DimParser(text, lookup).Parse(); }

}  // namespace sinter
