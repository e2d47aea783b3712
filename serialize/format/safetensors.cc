#include "sinter/serialize/format/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"

namespace sinter::format {
namespace {

using nlohmann::json;

constexpr std::pair<const char*, DType> kTypes[] = {{"F32", kFloat32}, {"F64", kFloat64}, {"F16", kFloat16}, {"BF16", kBFloat16}, {"I8", kInt8},
                                                    {"U8", kUInt8},    {"I32", kInt32},   {"I64", kInt64},   {"BOOL", kBool}};

const char* TypeName(DType t) {
  for (const auto& [name, type] : kTypes)
    if (type == t) return name;
  return "F32";
}

constexpr char kMetadata[] = "__metadata__";
constexpr uint64_t kMaxHeader = uint64_t{100} << 20;  // the format's own limit

void SortForFile(std::vector<NamedTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) {
    if (ItemSize(a.dtype) != ItemSize(b.dtype)) return ItemSize(a.dtype) > ItemSize(b.dtype);
    return a.name < b.name;
  });
}

// A file that the reader would refuse is not written.
void CheckNames(const std::vector<NamedTensor>& tensors) {
  std::set<std::string_view> names;
  for (const NamedTensor& t : tensors) {
    if (!names.insert(t.name).second) throw Error(ErrorCode::kInvalidArgument, StrCat("safetensors: two tensors are named '", t.name, "'"));
    if (t.name == kMetadata) throw Error(ErrorCode::kInvalidArgument, StrCat("safetensors: the format keeps the name '", kMetadata, "' for itself; rename the tensor"));
  }
}

}  // namespace

std::vector<std::byte> SafetensorsHeader(const std::vector<NamedTensor>& tensors, const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  uint64_t offset = 0;
  for (const NamedTensor& t : tensors) {
    header[t.name] = {{"dtype", TypeName(t.dtype)}, {"shape", std::vector<int64_t>(t.shape.begin(), t.shape.end())}, {"data_offsets", {offset, offset + t.bytes.size()}}};
    offset += t.bytes.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    throw Error(ErrorCode::kInvalidArgument, "safetensors: a name or an entry of the metadata is not valid UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::vector<std::byte> out(8 + text.size());
  const uint64_t size = text.size();
  std::memcpy(out.data(), &size, 8);
  std::memcpy(out.data() + 8, text.data(), text.size());
  return out;
}

void WriteSafetensors(const std::string& path, std::vector<NamedTensor> tensors, const std::map<std::string, std::string>& metadata) {
  CheckNames(tensors);
  SortForFile(tensors);
  const std::vector<std::byte> header = SafetensorsHeader(tensors, metadata);
  std::vector<std::span<const std::byte>> parts = {header};
  for (const NamedTensor& t : tensors) parts.push_back(t.bytes);
  WriteFileAtomic(path, parts);
}

Safetensors::Safetensors(const std::string& path) : file_(path) {
  auto fail = [&](const std::string& problem) { throw Error(ErrorCode::kDataLoss, StrCat("'", path, "' is not a sound safetensors file: ", problem)); };
  const std::span<const std::byte> bytes = file_.bytes();
  uint64_t size = 0;
  if (bytes.size() < 8) fail("it is shorter than its header");
  std::memcpy(&size, bytes.data(), 8);
  if (size > kMaxHeader || size > bytes.size() - 8) fail("its header is longer than the file");
  const uint64_t data = bytes.size() - 8 - size;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  try {
    // Names that occur twice must be seen: the parser keeps the last otherwise.
    std::vector<std::string> keys;
    json header = json::parse(reinterpret_cast<const char*>(bytes.data()) + 8, reinterpret_cast<const char*>(bytes.data()) + 8 + size,
                              [&](int depth, json::parse_event_t event, json& parsed) {
                                if (depth > 3) fail("its header is nested too deeply");
                                if (depth == 1 && event == json::parse_event_t::key) keys.push_back(parsed.get<std::string>());
                                return true;
                              });
    if (!header.is_object()) fail("its header is no object");
    std::sort(keys.begin(), keys.end());
    if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) fail("a name occurs twice");
    for (const auto& [name, entry] : header.items()) {
      if (name == kMetadata) {
        metadata_ = entry.get<std::map<std::string, std::string>>();
        continue;
      }
      NamedTensor t;
      t.name = name;
      const std::string type = entry.at("dtype").get<std::string>();
      auto it = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& k) { return type == k.first; });
      if (it == std::end(kTypes)) fail(StrCat("tensor '", name, "' has the unknown type ", type.substr(0, 32)));
      t.dtype = it->second;
      const json& shape = entry.at("shape");
      if (!shape.is_array() || shape.size() > kMaxRank) fail(StrCat("tensor '", name, "' has a bad shape"));
      for (const json& d : shape) {
        if (!d.is_number_unsigned() || d.get<uint64_t>() > uint64_t{1} << 56) fail(StrCat("tensor '", name, "' has a bad size"));
        t.shape.push_back(static_cast<int64_t>(d.get<uint64_t>()));
      }
      const json& offsets = entry.at("data_offsets");
      if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) fail(StrCat("tensor '", name, "' has bad offsets"));
      const uint64_t begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
      if (begin > end || end > data) fail(StrCat("tensor '", name, "' lies outside of the file"));
      uint64_t count = static_cast<uint64_t>(NumElements(t.shape));
      if (count > data || count * static_cast<uint64_t>(ItemSize(t.dtype)) != end - begin) fail(StrCat("tensor '", name, "' has another number of bytes than its shape says"));
      ranges.emplace_back(begin, end);
      t.bytes = bytes.subspan(8 + size + begin, end - begin);
      tensors_.push_back(std::move(t));
    }
  } catch (const json::exception& e) {
    fail("its header is damaged");
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != at) fail("tensors overlap or leave gaps");
    at = end;
  }
  if (at != data) fail("there are bytes after the last tensor");
}

const NamedTensor* Safetensors::Find(std::string_view name) const {
  for (const NamedTensor& t : tensors_)
    if (t.name == name) return &t;
  return nullptr;
}

}  // namespace sinter::format
