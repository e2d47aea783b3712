#include "sinter/serialize/format/npy.h"

#include <charconv>
#include <cstring>

#include "sinter/graph/error.h"
#include "sinter/graph/strings.h"
#include "sinter/serialize/format/file_io.h"

namespace sinter::format {
namespace {

constexpr std::pair<std::string_view, DType> kTypes[] = {{"<f4", kFloat32}, {"<f8", kFloat64}, {"<f2", kFloat16}, {"|i1", kInt8}, {"|u1", kUInt8},
                                                         {"<i4", kInt32},   {"<i8", kInt64},   {"|b1", kBool}};
constexpr std::string_view kMagic("\x93NUMPY", 6);

}  // namespace

NpyArray ReadNpy(const std::string& path) {
  auto fail = [&](const std::string& problem) { throw Error(ErrorCode::kDataLoss, StrCat("'", path, "' is not a sound .npy file: ", problem)); };
  MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (text.size() < 10 || !text.starts_with(kMagic)) fail("it does not begin as one");
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3) fail(StrCat("version ", version, " is not known"));
  uint32_t length = 0;
  const size_t prefix = version == 1 ? 10 : 12;
  if (text.size() < prefix) fail("its header is cut off");
  std::memcpy(&length, text.data() + 8, version == 1 ? 2 : 4);
  if (length > text.size() - prefix || length > 1 << 20) fail("its header is cut off");
  const std::string_view header = text.substr(prefix, length);

  auto value = [&](std::string_view key) {
    const size_t at = header.find(StrCat("'", key, "'"));
    if (at == std::string_view::npos) fail(StrCat("its header lacks '", key, "'"));
    const size_t colon = header.find(':', at);
    if (colon == std::string_view::npos) fail("its header is damaged");
    std::string_view v = header.substr(colon + 1);
    while (!v.empty() && v.front() == ' ') v.remove_prefix(1);
    return v;
  };
  NpyArray a;
  std::string_view descr = value("descr");
  if (descr.size() < 5 || (descr[0] != '\'' && descr[0] != '"')) fail("its type is not a plain one");
  descr = descr.substr(1, descr.find(descr[0], 1) - 1);
  bool known = false;
  for (const auto& [name, type] : kTypes)
    if (name == descr || (name[0] == '|' && descr.size() == 3 && name.substr(1) == descr.substr(1))) a.dtype = type, known = true;
  if (!known) fail(StrCat("elements of type ", descr.substr(0, 16), " are not supported; convert the array"));
  const bool fortran = value("fortran_order").starts_with("True");
  std::string_view shape = value("shape");
  if (!shape.starts_with("(")) fail("its shape is damaged");
  shape.remove_prefix(1);
  for (;;) {
    while (!shape.empty() && (shape.front() == ' ' || shape.front() == ',')) shape.remove_prefix(1);
    if (shape.empty()) fail("its shape is damaged");
    if (shape.front() == ')') break;
    int64_t d = 0;
    auto [end, fault] = std::from_chars(shape.data(), shape.data() + shape.size(), d);
    if (fault != std::errc() || d < 0 || a.shape.size() == kMaxRank) fail("its shape is damaged or has too many dimensions");
    a.shape.push_back(d);
    shape.remove_prefix(static_cast<size_t>(end - shape.data()));
  }
  const size_t item = static_cast<size_t>(ItemSize(a.dtype));
  const uint64_t count = static_cast<uint64_t>(NumElements(a.shape));
  const size_t available = text.size() - prefix - length;
  if (count > available || count * item != available) fail(StrCat("it has ", available, " bytes of data, its shape needs another number"));
  a.bytes.resize(available);
  const std::byte* from = file.bytes().data() + prefix + length;
  if (!fortran || a.shape.size() < 2) {
    if (available > 0) std::memcpy(a.bytes.data(), from, available);
    return a;
  }
  Shape at(a.shape.size(), 0);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t offset = 0, stride = 1;
    for (size_t d = 0; d < at.size(); ++d) offset += static_cast<uint64_t>(at[d]) * stride, stride *= static_cast<uint64_t>(a.shape[d]);
    std::memcpy(a.bytes.data() + i * item, from + offset * item, item);
    for (size_t d = at.size(); d-- > 0 && ++at[d] == a.shape[d];) at[d] = 0;
  }
  return a;
}

void WriteNpy(const std::string& path, DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  std::string_view descr;
  for (const auto& [name, type] : kTypes)
    if (type == dtype) descr = name;
  if (descr.empty()) throw Error(ErrorCode::kInvalidArgument, StrCat("WriteNpy: NumPy has no type for ", DTypeName(dtype), "; convert to float32"));
  std::string header = StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", Join(shape, ", "), shape.size() == 1 ? ",), }" : "), }");
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string start(kMagic);
  start += '\x01';
  start += '\0';
  const uint16_t length = static_cast<uint16_t>(header.size());
  start.append(reinterpret_cast<const char*>(&length), 2);
  start += header;
  const std::span<const std::byte> parts[] = {{reinterpret_cast<const std::byte*>(start.data()), start.size()}, bytes};
  WriteFileAtomic(path, parts);
}

}  // namespace sinter::format
