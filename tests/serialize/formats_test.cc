#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "sinter/codegen/compile.h"
#include "sinter/codegen/optimize.h"
#include "sinter/graph/error.h"
#include "sinter/graph/ops/basic.h"
#include "sinter/serialize/format/graph_file.h"
#include "sinter/serialize/format/npy.h"
#include "sinter/serialize/format/safetensors.h"

namespace sinter::format {
namespace {

std::string TempFile(const std::string& name) { return std::string(std::getenv("TEST_TMPDIR")) + "/" + name; }

std::span<const std::byte> Bytes(const auto& v) { return {reinterpret_cast<const std::byte*>(v.data()), v.size() * sizeof(v[0])}; }

void Put(const std::string& path, std::string_view bytes) { std::ofstream(path, std::ios::binary) << bytes; }

TEST(Safetensors, RoundTrip) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> b = {7};
  const std::vector<uint8_t> c = {1, 0, 1};
  const std::string path = TempFile("round.safetensors");
  WriteSafetensors(path, {{"a", kFloat32, {2, 3}, Bytes(a)}, {"scalar", kInt64, {}, Bytes(b)}, {"flags", kBool, {3}, Bytes(c)}, {"empty", kFloat64, {0, 4}, {}}}, {{"k", "v"}});
  Safetensors file(path);
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.metadata().at("k"), "v");
  const NamedTensor* t = file.Find("a");
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->shape, (Shape{2, 3}));
  EXPECT_EQ(std::memcmp(t->bytes.data(), a.data(), t->bytes.size()), 0);
  EXPECT_EQ(file.Find("scalar")->shape, Shape{});
  EXPECT_EQ(file.Find("empty")->bytes.size(), 0u);
  EXPECT_EQ(file.Find("none"), nullptr);
}

TEST(Safetensors, ReadsTheFormatAsOthersWriteIt) {
  const std::string header = R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string file;
  const uint64_t size = header.size();
  file.append(reinterpret_cast<const char*>(&size), 8);
  file += header;
  const float data[] = {1.5f, -2};
  file.append(reinterpret_cast<const char*>(data), 8);
  const std::string path = TempFile("other.safetensors");
  Put(path, file);
  Safetensors s(path);
  float first;
  std::memcpy(&first, s.Find("x")->bytes.data(), sizeof first);  // at no multiple of 4 in this file
  EXPECT_EQ(first, 1.5f);
}

TEST(Safetensors, NamesThatCannotBeReadBackAreNotWritten) {
  const std::vector<float> a = {1};
  const std::string path = TempFile("names.safetensors");
  EXPECT_THROW(WriteSafetensors(path, {{"a", kFloat32, {1}, Bytes(a)}, {"a", kFloat32, {1}, Bytes(a)}}), Error);
  EXPECT_THROW(WriteSafetensors(path, {{"__metadata__", kFloat32, {1}, Bytes(a)}}), Error);
  EXPECT_THROW(WriteSafetensors(path, {{"\xff", kFloat32, {1}, Bytes(a)}}), Error);
  EXPECT_FALSE(FileExists(path));
}

// Every truncation and many changed bytes: an Error, or a file that is sound; never anything else.
TEST(Safetensors, HostileFilesCanOnlyFail) {
  const std::vector<float> a = {1, 2, 3, 4};
  const std::string path = TempFile("good.safetensors");
  WriteSafetensors(path, {{"a", kFloat32, {2, 2}, Bytes(a)}, {"b", kFloat32, {4}, Bytes(a)}});
  const std::string good = ReadFile(path);
  const std::string bad = TempFile("bad.safetensors");
  int refused = 0;
  auto attempt = [&](const std::string& bytes) {
    Put(bad, bytes);
    try {
      Safetensors s(bad);
      for (const NamedTensor& t : s.tensors()) ASSERT_EQ(t.bytes.size(), static_cast<size_t>(NumElements(t.shape)) * ItemSize(t.dtype));
    } catch (const Error&) {
      ++refused;
    }
  };
  for (size_t n = 0; n < good.size(); ++n) attempt(good.substr(0, n));
  EXPECT_EQ(refused, static_cast<int>(good.size()));
  std::mt19937 rng(1);
  for (int i = 0; i < 2000; ++i) {
    std::string b = good;
    const size_t header = b.size() - 32;
    b[rng() % header] ^= static_cast<char>(1 << rng() % 8);
    attempt(b);
  }
  for (const char* header : {R"({"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}})", R"({"x":{"dtype":"F32","shape":[9223372036854775807,9],"data_offsets":[0,0]}})",
                             R"({"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", "[]", "{", R"({"x":1})",
                             R"({"x":{"dtype":"Q9","shape":[0],"data_offsets":[0,0]}})", R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})"}) {
    const int before = refused;
    std::string file;
    const uint64_t size = std::strlen(header);
    file.append(reinterpret_cast<const char*>(&size), 8);
    attempt(file + header);
    EXPECT_EQ(refused, before + 1) << header;
  }
}

TEST(Npy, RoundTripAndOtherLayouts) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::string path = TempFile("a.npy");
  WriteNpy(path, kFloat32, {2, 3}, Bytes(a));
  NpyArray r = ReadNpy(path);
  EXPECT_EQ(r.shape, (Shape{2, 3}));
  EXPECT_EQ(std::memcmp(r.bytes.data(), a.data(), 24), 0);
  WriteNpy(path, kInt64, {}, Bytes(std::vector<int64_t>{5}));
  EXPECT_EQ(ReadNpy(path).shape, Shape{});
  WriteNpy(path, kFloat64, {0, 7}, {});
  EXPECT_EQ(ReadNpy(path).shape, (Shape{0, 7}));
  // Fortran order, version 2.
  std::string header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
  header.resize(64 - 12 - 1 + 64, ' ');
  header += "\n";
  std::string file("\x93NUMPY\x02\x00", 8);
  const uint32_t n = static_cast<uint32_t>(header.size());
  file.append(reinterpret_cast<const char*>(&n), 4);
  file += header;
  const float columns[] = {1, 4, 2, 5, 3, 6};
  file.append(reinterpret_cast<const char*>(columns), 24);
  Put(path, file);
  r = ReadNpy(path);
  EXPECT_EQ(std::memcmp(r.bytes.data(), a.data(), 24), 0);
}

TEST(Npy, HostileFilesCanOnlyFail) {
  const std::string path = TempFile("g.npy"), bad = TempFile("b.npy");
  WriteNpy(path, kFloat32, {2, 3}, Bytes(std::vector<float>(6)));
  const std::string good = ReadFile(path);
  for (size_t n = 0; n < good.size(); ++n) {
    Put(bad, good.substr(0, n));
    EXPECT_THROW(ReadNpy(bad), Error) << n;
  }
  std::mt19937 rng(2);
  for (int i = 0; i < 2000; ++i) {
    std::string b = good;
    b[rng() % 80] ^= static_cast<char>(1 << rng() % 8);
    Put(bad, b);
    try {
      NpyArray a = ReadNpy(bad);
      EXPECT_EQ(a.bytes.size(), static_cast<size_t>(NumElements(a.shape)) * ItemSize(a.dtype));
    } catch (const Error&) {
    }
  }
}

// Attributes that a file leaves out are the defaults of the op, which a literal has none of.
TEST(Programs, NodesWithoutAttributes) {
  auto file = [](const OpDef& op, AttrPtr attrs) {
    ProgramFile program;
    program.entries.push_back(std::make_unique<Graph>());
    Graph& g = *program.entries[0];
    Node* n = g.AddNode(g.body, op, std::move(attrs), {});
    n->attrs = nullptr;
    g.SetOutputs({n->out()});
    return WriteProgram(program);
  };
  ProgramFile full = ReadProgram(file(DefOf<ops::Full>(), nullptr), "full");
  Verify(*full.entries[0]);
  codegen::Optimize(*full.entries[0]);
  codegen::CompileInterpreted(*full.entries[0]);
  const TensorLiteral one{kFloat32, {}, std::make_shared<std::vector<std::byte>>(4)};
  EXPECT_THROW(ReadProgram(file(DefOf<ops::Constant>(), MakeAttrs(ops::Constant::Attrs{one})), "constant"), Error);
}

TEST(Files, FailuresNameThePathAndTheRemedy) {
  try {
    WriteFileAtomic("/proc/nothing/here", std::string_view("x"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("/proc/nothing/here"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("folder does not exist"), std::string::npos) << e.what();
  }
  EXPECT_THROW(MappedFile("/nowhere"), Error);
  EXPECT_THROW(MappedFile("/tmp"), Error);
}

}  // namespace
}  // namespace sinter::format
