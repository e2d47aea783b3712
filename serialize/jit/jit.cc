#include "sinter/serialize/jit/jit.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "sinter/eager/creation.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/recorder.h"
#include "sinter/graph/ops/control_flow.h"
#include "sinter/graph/strings.h"
#include "sinter/serialize/format/graph_file.h"
#include "sinter/tracer/run_executable.h"

namespace sinter::jit {
namespace {

using nlohmann::ordered_json;

ordered_json TypeJson(const Value& v) {
  ordered_json shape = ordered_json::array();
  for (Dim d : v.type.shape) {
    if (d.is_const()) shape.push_back(d.value());
    else shape.push_back(d.ToString());
  }
  return {{"name", v.name}, {"dtype", std::string(DTypeName(v.type.dtype))}, {"shape", shape}};
}

struct Certificate {
  std::string digest;   // empty: there is none
  std::string missing;  // why
};

std::string InfoText(const Graph& g, const Certificate& certificate, const SaveOptions& options) {
  ordered_json inputs = ordered_json::array(), outputs = ordered_json::array(), dims = ordered_json::array(), states = ordered_json::array();
  for (int i = 0; i < g.num_args; ++i) inputs.push_back(TypeJson(*g.body.params[static_cast<size_t>(i)]));
  for (int i = 0; i < g.num_outputs; ++i) outputs.push_back(TypeJson(*g.body.results[static_cast<size_t>(i)]));
  for (const StateSlot& s : g.states) states.push_back(TypeJson(*g.body.params[static_cast<size_t>(s.param)]));
  for (Dim d : g.Symbols()) {
    const Dim::Facts f = d.facts();
    dims.push_back({{"name", d.symbol_name()}, {"min", f.min}, {"max", f.max}, {"multiple_of", f.multiple_of}});
  }
  ordered_json info = {{"format", "sinter program"}, {"version", 1}, {"name", g.name},       {"numerics", NumericsName(g.numerics)},
                       {"inputs", inputs},           {"outputs", outputs}, {"dims", dims}, {"weights", states}};
  if (certificate.digest.empty()) info["certificate"] = {{"none", certificate.missing}};
  else info["certificate"] = {{"sha256", certificate.digest}};
  info["metadata"] = options.metadata;
  return info.dump(2) + "\n";
}

// Loops may have been compared with the function for more turns since the capture.
void SetVerifiedTurns(Block& block, int64_t turns) {
  for (const auto& n : block.nodes) {
    if (n->op == &DefOf<ops::While>()) n->attrs = MakeAttrs(ops::While::Attrs{turns});
    for (const auto& r : n->regions) SetVerifiedTurns(*r, turns);
  }
}

// What a program gives for inputs made from a seed, as a digest. None where it writes state, may give other bits on other machines, or
// refuses these inputs (an index out of range, a loop that runs longer than was verified).
Certificate CertificateOf(const tracer::Entry& entry, const Graph& g, uint64_t seed) {
  const bool pure = std::none_of(g.states.begin(), g.states.end(), [](const StateSlot& s) { return s.result >= 0; });
  if (!pure) return {"", "the program writes state, so that a call is not like the one before"};
  if (g.numerics != Numerics::kExact) return {"", StrCat("under Numerics of '", NumericsName(g.numerics), "' other machines may give other bits; capture with kExact")};
  const std::optional<std::vector<HostArray>> arrays = CertificateInputs(g, seed);
  if (!arrays) return {"", "no sizes that were tried meet the program's guards"};
  std::vector<Tensor> inputs;
  for (const HostArray& a : *arrays) inputs.push_back(from_blob(a.memory->data(), a.shape, a.dtype));
  std::vector<TensorImpl*> operands;
  for (const Tensor& t : inputs) operands.push_back(&t.impl());
  for (const tracer::External& e : entry.externals) operands.push_back(&e.Current());
  std::vector<ImplPtr> results;
  try {
    results = tracer::RunExecutable(*entry.executable, operands);
  } catch (const Error& e) {
    return {"", StrCat("the program refuses inputs made from a seed: ", e.message())};
  }
  std::string all;
  for (int i = 0; i < g.num_outputs; ++i) {
    const TensorImpl& t = *results[static_cast<size_t>(i)];
    all += DigestOf(TensorView{t.data(), t.dtype, t.shape, t.strides});
  }
  return {format::Sha256(all), ""};
}

}  // namespace

void SaveEntry(const tracer::Entry& entry, const std::string& given, const SaveOptions& options) {
  const std::string name = ProgramName(given);
  format::ProgramFile program;
  program.entries.push_back(entry.graph->Clone());
  Graph& g = *program.entries[0];
  SetVerifiedTurns(g.body, entry.verified_turns);
  // Weights by the names of the states; row-major copies.
  std::vector<Tensor> keep;
  std::vector<format::NamedTensor> weights;
  std::set<std::string> names;
  for (size_t i = 0; i < g.states.size(); ++i) {
    Tensor t = no_grad([&] { return Tensor(ImplPtr(&entry.externals[i].Current())).detach().contiguous(); });
    keep.push_back(t);
    if (!names.insert(g.states[i].name).second)
      throw Error(ErrorCode::kInvalidArgument, StrCat("jit::save: two state tensors are named '", g.states[i].name, "'"));
    const TensorImpl& impl = t.impl();
    weights.push_back({g.states[i].name, impl.dtype, impl.shape, {impl.data(), static_cast<size_t>(impl.numel()) * ItemSize(impl.dtype)}});
  }
  constexpr uint64_t kSeed = 0x5eed;
  const Certificate certificate = CertificateOf(entry, g, kSeed);
  program.digest = certificate.digest;
  if (!program.digest.empty()) program.digest_seed = kSeed;
  program.info = InfoText(g, certificate, options);

  // 1. The weights under a name of their own; 2. the program, whose rename is the commit; 3. the plain names.
  const std::string plain = name + ".safetensors";
  const std::string staged = plain + ".staged";
  format::WriteSafetensors(staged, std::move(weights));
  std::string hashed;
  try {
    {
      format::MappedFile file(staged);
      program.weights_sha256 = format::Sha256(file.bytes());
    }
    hashed = StrCat(plain, ".", program.weights_sha256.substr(0, 16));
    format::RenameFile(staged, hashed);
    const std::vector<std::byte> bytes = format::WriteProgram(program);
    const std::span<const std::byte> part(bytes);
    format::WriteFileAtomic(name + ".sgraph", std::span(&part, 1));
  } catch (...) {
    format::RemoveFile(staged);
    if (!hashed.empty()) format::RemoveFile(hashed);
    throw;
  }
  // Committed: from here on the model loads whatever happens.
  format::RenameFile(hashed, plain);
  format::WriteFileAtomic(name + ".json", program.info);
}

std::vector<Tensor> LoadedFunction::Call(const std::vector<Tensor>& arguments) const {
  if (Recorder::Current() != nullptr)
    throw Error(ErrorCode::kUnimplemented, "a loaded program can't be called while another function is captured: its result would be frozen into that program");
  std::vector<TensorView> views;
  for (const Tensor& t : arguments) {
    const TensorImpl& impl = t.impl();
    if (impl.symbolic) throw Error(ErrorCode::kUnimplemented, "a loaded program can't be called while another function is captured");
    views.push_back({impl.data(), impl.dtype, impl.shape, impl.strides});
  }
  std::vector<Tensor> results;
  for (const HostArray& a : model_->Run(views)) results.push_back(from_blob(a.memory->data(), a.shape, a.dtype));
  return results;
}

LoadedFunction load(const std::string& name, const LoadOptions& options) { return LoadedFunction(ServedModel::Load(name, options)); }

}  // namespace sinter::jit
