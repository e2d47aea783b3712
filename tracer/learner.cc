#include "sinter/tracer/learner.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "sinter/graph/call_stack.h"
#include "sinter/graph/strings.h"

namespace sinter::tracer {
namespace {

// All segments known so far, by decisions. Every run is compared with what an earlier one said.
class Observations {
 public:
  Observations(Subject& subject, const LearnerOptions& options) : subject_(subject), options_(options), root_(std::make_unique<Node>()) {}

  /// The segment after these decisions; null if the function ends before the last of them.
  const Segment* At(const Path& path) {
    Node* n = root_.get();
    bool known = n->seen;
    for (bool b : path) {
      if (!known) break;
      if (n->segment.kind != Segment::kBranch) return nullptr;
      n = Child(*n, b);
      known = n->seen;
    }
    if (!known) Run(path);
    n = root_.get();
    for (bool b : path) {
      if (n->segment.kind != Segment::kBranch) return nullptr;
      n = Child(*n, b);
      if (!n->seen) return nullptr;
    }
    return &n->segment;
  }
  int runs() const { return runs_; }

 private:
  struct Node {
    bool seen = false;
    Segment segment;
    std::unique_ptr<Node> child[2];
  };

  static Node* Child(Node& n, bool b) {
    if (!n.child[b]) n.child[b] = std::make_unique<Node>();
    return n.child[b].get();
  }

  void Run(const Path& path) {
    if (++runs_ > options_.max_runs)
      throw Error(ErrorCode::kResourceExhausted, StrCat("capture: gave up after ", options_.max_runs, " runs of the function"));
    std::vector<Segment> segments = subject_.Run(path);
    Node* n = root_.get();
    for (size_t i = 0; i < segments.size(); ++i) {
      if (i > 0) n = Child(*n, path[i - 1]);
      if (!n->seen) {
        n->seen = true;
        n->segment = std::move(segments[i]);
      } else if (!(n->segment == segments[i])) {
        throw Error(ErrorCode::kFailedPrecondition,
                    StrCat("capture: the function is not deterministic: the same decisions gave different operations: ",
                           Difference(n->segment, segments[i]), ". Random numbers of the host, static variables, addresses and uninitialised values do this"))
            .WithFrames(segments[i].stack);
      }
    }
  }

  Subject& subject_;
  const LearnerOptions& options_;
  std::unique_ptr<Node> root_;
  int runs_ = 0;
};

Path Concat(const Path& a, const Path& b) {
  Path p = a;
  p.insert(p.end(), b.begin(), b.end());
  return p;
}

class Learner {
 public:
  Learner(Subject& subject, const LearnerOptions& options) : subject_(subject), options_(options), seen_(subject, options) {}

  Automaton Run() {
    for (;;) {
      Explore();
      if (!FindCounterexample()) break;
    }
    automaton_.runs = seen_.runs();
    automaton_.verified_turns = options_.turns;
    return std::move(automaton_);
  }

 private:
  // From the observations and the distinguishing suffixes known, a closed automaton.
  void Explore() {
    automaton_ = Automaton();
    by_key_.clear();
    growth_.clear();
    automaton_.start = *seen_.At({});
    automaton_.entry = Resolve({}, automaton_.start);
    for (size_t q = 0; q < automaton_.blocks.size(); ++q) {
      if (automaton_.blocks[q].arrival.kind != Segment::kBranch) continue;
      for (int a : {1, 0}) {
        Path p = automaton_.blocks[q].access;
        p.push_back(a != 0);
        const Segment& s = *seen_.At(p);
        const int target = Resolve(p, s);
        automaton_.blocks[q].segment[a] = s;
        automaton_.blocks[q].target[a] = target;
      }
    }
  }

  // The block that an arrival by `p` enters: one of its key with equal futures, or a new one.
  int Resolve(const Path& p, const Segment& s) {
    std::vector<int>& candidates = by_key_[s.key];
    for (int c : candidates)
      if (SameFuture(p, automaton_.blocks[c].access, s.key)) return c;
    if (static_cast<int>(candidates.size()) >= options_.max_per_key) {
      const Segment& last = automaton_.blocks[static_cast<size_t>(candidates.back())].arrival;
      const std::string detail = s.ops == last.ops ? "" : Difference(s, last);
      throw Error(ErrorCode::kFailedPrecondition,
                  StrCat("capture: a plain host variable changes in the data-dependent loop at ", UserLocation(s.stack), " (", options_.max_per_key,
                         " variants of one decision so far). Declare it as Int or keep it in a Tensor", detail.empty() ? "" : "; " + detail))
          .WithFrames(s.stack);
    }
    if (static_cast<int>(automaton_.blocks.size()) >= options_.max_blocks || Grows(s)) FailTooMany(s);
    Block b;
    b.key = s.key;
    b.access = p;
    b.arrival = s;
    automaton_.blocks.push_back(std::move(b));
    candidates.push_back(static_cast<int>(automaton_.blocks.size()) - 1);
    return candidates.back();
  }

  // Whether a decision has met ever more live tensors, time after time: a container that a loop fills, or a recursion.
  bool Grows(const Segment& s) {
    auto& [live, times] = growth_[s.stack];
    times = s.types.size() > live ? times + 1 : 0;
    live = s.types.size();
    return s.kind == Segment::kBranch && times > options_.max_growth;
  }

  [[noreturn]] void FailTooMany(const Segment& s) {
    // One place of the program with ever other live values: something grows.
    const Segment* first = nullptr;
    int here = 0;
    for (const Block& b : automaton_.blocks) {
      if (b.arrival.kind != Segment::kBranch || b.arrival.stack != s.stack) continue;
      ++here;
      if (first == nullptr) first = &b.arrival;
    }
    if (here <= options_.max_per_key)
      throw Error(ErrorCode::kResourceExhausted, StrCat("capture: more than ", options_.max_blocks, " places where the function decides")).WithFrames(s.stack);
    auto live = [](const Segment& x) {
      return StrCat(x.types.size(), " tensors (", Join(std::span(x.types).first(std::min<size_t>(x.types.size(), 4)), ", ", [](std::string* out, const TensorType& t) { StrAppend(out, TypeToString(t)); }),
                    x.types.size() > 4 ? ", ..." : "", ")");
    };
    throw Error(ErrorCode::kFailedPrecondition,
                StrCat("capture: what is live at the decision at ", UserLocation(s.stack), " grows from turn to turn: ", live(*first), " at first, later ", live(s),
                       ". A loop that data ends keeps the sizes and the number of its tensors: write into a tensor of fixed size"))
        .WithFrames(s.stack);
  }

  bool SameFuture(const Path& p, const Path& q, const std::string& key) {
    for (const Path& e : suffixes_[key]) {
      for (size_t n = 1; n <= e.size(); ++n) {
        Path tail(e.begin(), e.begin() + static_cast<int64_t>(n));
        const Segment *a = seen_.At(Concat(p, tail)), *b = seen_.At(Concat(q, tail));
        if ((a == nullptr) != (b == nullptr)) return false;
        if (a == nullptr) break;
        if (!(*a == *b)) return false;
        if (a->kind != Segment::kBranch) break;
      }
    }
    return true;
  }

  const Block& At(int b) const { return automaton_.blocks[b]; }

  // The first decision after which the automaton and the function differ on `w`; -1 if nowhere.
  int Mismatch(const Path& w, size_t from_block, const Path& prefix) {
    int b = static_cast<int>(from_block);
    Path p = prefix;
    for (size_t i = 0; i < w.size(); ++i) {
      if (At(b).arrival.kind != Segment::kBranch) return -1;
      p.push_back(w[i]);
      const Segment* s = seen_.At(p);
      if (s == nullptr || !(*s == At(b).segment[w[i]])) return static_cast<int>(i);
      b = At(b).target[w[i]];
    }
    return -1;
  }

  // Compares a word from the entry; on a difference finds the wrong merge and a suffix that tells the two apart.
  bool Test(const Path& w) {
    seen_.At(w);  // one run shows all of it
    const int at = Mismatch(w, static_cast<size_t>(automaton_.entry), {});
    if (at < 0) return false;
    const Path word(w.begin(), w.begin() + at + 1);
    // blocks[i]: where the automaton is after i decisions. From the access path of blocks[i] the rest of the word must behave as
    // from here; the last i where it does not marks the merge before it.
    std::vector<int> blocks = {automaton_.entry};
    for (int i = 0; i < at; ++i) blocks.push_back(At(blocks.back()).target[word[static_cast<size_t>(i)]]);
    auto differs = [&](int i) {
      const Path rest(word.begin() + i, word.end());
      return Mismatch(rest, static_cast<size_t>(blocks[static_cast<size_t>(i)]), At(blocks[static_cast<size_t>(i)]).access) >= 0;
    };
    int low = 0, high = at;  // differs(low) holds (the empty access path is the entry's); differs(high) does not
    SINTER_CHECK(!differs(high), "an edge that was observed differs");
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (differs(middle) ? low : high) = middle;
    }
    suffixes_[At(blocks[static_cast<size_t>(high)]).key].push_back(Path(word.begin() + high, word.end()));
    return true;
  }

  // What looks like an endless loop may be one that a host variable ends: enough turns will show it.
  Path WayOutOrOn(int b) const {
    if (std::optional<Path> out = WayOut(automaton_, b)) return *out;
    Path path;
    uint64_t random = 1;
    for (int i = 0; i < 4 * options_.turns; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      path.push_back(random >> 63);
    }
    return path;
  }

  // A walk from a block that takes every edge reachable from it, nearest first; ends outside of the function or when all are taken.
  Path Tour(int b, std::set<std::pair<int, int>>& taken, size_t limit) {
    Path path;
    while (path.size() < limit) {
      // Nearest edge not yet taken.
      std::vector<int> queue = {b};
      std::map<int, std::pair<int, int>> from = {{b, {-1, 0}}};
      std::pair<int, int> found = {-1, 0};
      for (size_t i = 0; i < queue.size() && found.first < 0; ++i) {
        const int q = queue[i];
        if (At(q).arrival.kind != Segment::kBranch) continue;
        for (int a : {1, 0}) {
          if (!taken.contains({q, a})) {
            found = {q, a};
            break;
          }
          if (from.emplace(At(q).target[a], std::pair(q, a)).second) queue.push_back(At(q).target[a]);
        }
      }
      if (found.first < 0) break;
      Path steps = {found.second != 0};
      for (int x = found.first; from[x].first >= 0; x = from[x].first) steps.push_back(from[x].second != 0);
      std::reverse(steps.begin(), steps.end());
      for (bool s : steps) {
        taken.insert({b, s});
        path.push_back(s);
        b = At(b).target[s];
      }
      if (At(b).arrival.kind != Segment::kBranch) break;
    }
    return path;
  }

  bool FindCounterexample() {
    const int n = static_cast<int>(automaton_.blocks.size());
    for (int u = 0; u < n; ++u) {
      if (At(u).arrival.kind != Segment::kBranch) continue;
      for (int a : {0, 1}) {
        Path p = At(u).access;
        p.push_back(a != 0);
        const int q = At(u).target[a];
        if (p == At(q).access) continue;
        // A merge: every edge that can follow is taken at least once after it.
        std::set<std::pair<int, int>> taken;
        for (int rounds = 0; rounds < 4 * n + 4; ++rounds) {
          const size_t before = taken.size();
          Path tour = Tour(q, taken, 4096);
          int end = q;
          for (bool s : tour) end = At(end).target[s];
          if (Test(Concat(Concat(p, tour), WayOutOrOn(end)))) return true;
          if (taken.size() == before) break;
        }
      }
    }
    for (int u = 0; u < n; ++u) {
      if (At(u).arrival.kind != Segment::kBranch) continue;
      for (int a : {0, 1})
        for (int b : {0, 1}) {
          const int t = At(u).target[a];
          if (At(t).arrival.kind != Segment::kBranch) continue;
          if (Test(Concat(Concat(At(u).access, {a != 0, b != 0}), WayOutOrOn(At(t).target[b])))) return true;
        }
    }
    return PumpLoops();
  }

  // Each loop run many times, then every way out of it.
  bool PumpLoops() {
    for (const auto& [q, cycle] : CyclesOf(automaton_)) {
      const size_t prefix = At(q).access.size();
      auto turns_of = [&](int n) {
        Path w = At(q).access;
        for (int k = 0; k < n; ++k) w.insert(w.end(), cycle.begin(), cycle.end());
        return w;
      };
      // In the steady state only a counter of the function's own changes from turn to turn. It may never act; a longer run tells.
      std::vector<size_t> steady;
      for (size_t k = 3; k < 7; ++k) steady.push_back(prefix + k * cycle.size());
      const std::optional<std::string> counter = subject_.HostChange(turns_of(8), steady);
      Path w = turns_of(counter ? std::max(options_.turns, options_.counted_turns) : options_.turns);
      // Leave at each decision of the cycle.
      int b = q;
      for (bool step : cycle) {
        Path exit = w;
        exit.push_back(!step);
        const Path word = Concat(exit, WayOutOrOn(At(b).target[!step]));
        CheckTurns(word, q, cycle.size(), counter);
        if (Test(word)) return true;
        w.push_back(step);
        b = At(b).target[step];
      }
    }
    return false;
  }

  // A loop that does something else after more turns than may be unrolled is refused at once: every turn would be a variant of its own.
  void CheckTurns(const Path& word, int q, size_t cycle, const std::optional<std::string>& counter) {
    seen_.At(word);
    const int at = Mismatch(word, static_cast<size_t>(automaton_.entry), {});
    if (at < 0) return;
    const int64_t turns = (static_cast<int64_t>(at) - static_cast<int64_t>(At(q).access.size())) / static_cast<int64_t>(cycle) + 1;
    if (turns <= options_.max_per_key) return;
    const Segment& s = At(q).arrival;
    throw Error(ErrorCode::kFailedPrecondition,
                StrCat("capture: the loop at ", UserLocation(s.stack), " is ended or changed by a plain host variable after ", turns, " turns",
                       counter ? StrCat(" (a value on the stack goes ", *counter, " in a turn)") : "", ", more than the ", options_.max_per_key,
                       " that may be unrolled. Declare the counter as Int, or keep it in a Tensor"))
        .WithFrames(s.stack);
  }

  Subject& subject_;
  const LearnerOptions& options_;
  Observations seen_;
  Automaton automaton_;
  std::map<std::string, std::vector<int>> by_key_;
  std::map<std::string, std::vector<Path>> suffixes_;
  std::map<std::vector<void*>, std::pair<size_t, int>> growth_;  // by decision: live tensors the last time, and how often they were more
};

}  // namespace

std::string Difference(const Segment& a, const Segment& b) {
  for (size_t i = 0; i < std::max(a.ops.size(), b.ops.size()); ++i) {
    auto text = [&](const Segment& s) {
      if (i >= s.ops.size()) return std::string("the end");
      const TraceOp& op = s.ops[i];
      return StrCat("'", op.op->name, op.attrs ? StrCat("{", AttrsToString(op.attrs), "}") : "", "' at ", UserLocation(op.stack));
    };
    if (i < a.ops.size() && i < b.ops.size() && a.ops[i] == b.ops[i]) continue;
    return StrCat(text(a), " against ", text(b));
  }
  if (a.kind != b.kind) return "one run decides where the other returns";
  if (!(a.values == b.values)) return "different values are live";
  return "the decisions are at different places";
}

void CheckLongRuns(Subject& subject, const Automaton& automaton, int64_t turns) {
  for (const auto& [q, cycle] : CyclesOf(automaton)) {
    const Block& head = automaton.blocks[static_cast<size_t>(q)];
    Path word = head.access;
    for (int64_t k = 0; k < turns; ++k) word.insert(word.end(), cycle.begin(), cycle.end());
    int b = q;
    for (bool step : cycle) {
      const size_t before = word.size();
      word.push_back(!step);
      if (std::optional<Path> out = WayOut(automaton, automaton.blocks[static_cast<size_t>(b)].target[!step])) word.insert(word.end(), out->begin(), out->end());
      // Segment 0 leads to the entry, segment i is what follows decision i - 1.
      size_t i = 0;
      std::string difference;
      auto compare = [&](size_t lines_from) {
        int at = automaton.entry;
        i = 0;
        subject.Follow(word, lines_from, [&](const Segment& s) {
          const Block& here = automaton.blocks[static_cast<size_t>(at)];
          const Segment& want = i == 0 ? automaton.start : here.segment[word[i - 1]];
          if (i > 0) at = here.target[word[i - 1]];
          if (s == want) return i++, true;
          difference = Difference(want, s);
          return false;
        });
      };
      compare(word.size() + 1);
      if (!difference.empty()) compare(i);
      if (!difference.empty()) {
        const int64_t turn = (static_cast<int64_t>(i) - 1 - static_cast<int64_t>(head.access.size())) / static_cast<int64_t>(cycle.size()) + 1;
        throw Error(ErrorCode::kFailedPrecondition,
                    StrCat("the loop at ", UserLocation(head.arrival.stack), " was captured as one that only data ends, but the function does something else in turn ", turn,
                           ": ", difference, ". A host variable (on the heap, or a global) counts its turns: declare it as Int, or keep it in a Tensor"))
            .WithFrames(head.arrival.stack);
      }
      word.resize(before);
      word.push_back(step);
      b = automaton.blocks[static_cast<size_t>(b)].target[step];
    }
  }
}

Automaton Learn(Subject& subject, const LearnerOptions& options) { return Learner(subject, options).Run(); }

}  // namespace sinter::tracer
