#include "sinter/serialize/format/served_model.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sinter/codegen/cpu/backend.h"
#include "sinter/codegen/optimize.h"
#include "sinter/graph/strings.h"
#include "sinter/runtime/strides.h"
#include "sinter/serialize/format/graph_file.h"

namespace sinter {
namespace {

HostArray NewArray(DType dtype, Shape shape) {
  HostArray a{dtype, std::move(shape), nullptr};
  a.memory = std::make_shared<MemoryBlock>(ByteCount(NumElements(a.shape), ItemSize(dtype)));
  return a;
}

uint64_t NextRandom(uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 11;
}

}  // namespace

std::span<const std::byte> HostArray::bytes() const { return {memory->as<const std::byte>(), static_cast<size_t>(NumElements(shape)) * ItemSize(dtype)}; }

std::string ProgramName(std::string_view name) {
  if (name.ends_with(".sgraph")) name.remove_suffix(std::string_view(".sgraph").size());
  return std::string(name);
}

std::shared_ptr<ServedModel> ServedModel::Load(const std::string& given, const LoadOptions& options) {
  const std::string name = ProgramName(given);
  std::shared_ptr<ServedModel> m(new ServedModel());
  m->name_ = name;
  m->options_ = options;
  format::ProgramFile program;
  {
    format::MappedFile file(name + ".sgraph");
    program = format::ReadProgram(file.bytes(), name + ".sgraph");
  }
  m->graph_ = std::move(program.entries[0]);
  m->info_ = std::move(program.info);

  // A save that was interrupted after its commit left the weights under the name with their hash.
  const std::string plain = name + ".safetensors", hashed = StrCat(plain, ".", program.weights_sha256.substr(0, 16));
  const bool other = format::FileExists(hashed);
  auto weights = std::make_unique<format::Safetensors>(other ? hashed : plain);
  if (options.check == FileCheck::kFull && format::Sha256(weights->file_bytes()) != program.weights_sha256)
    throw Error(ErrorCode::kDataLoss, StrCat("'", other ? hashed : plain, "' is not the weight file that '", name, ".sgraph' was saved with: it was changed, damaged or belongs to another save"));
  for (const StateSlot& s : m->graph_->states) {
    const TensorType& type = m->graph_->body.params[static_cast<size_t>(s.param)]->type;
    const format::NamedTensor* t = weights->Find(s.name);
    if (t == nullptr) throw Error(ErrorCode::kDataLoss, StrCat("'", plain, "' has no tensor '", s.name, "', which the program needs"));
    if (t->dtype != type.dtype || SymShape(t->shape.begin(), t->shape.end()) != type.shape)
      throw Error(ErrorCode::kDataLoss, StrCat("'", plain, "': tensor '", s.name, "' is ", TypeToString(ConcreteType{t->dtype, t->shape}), ", the program needs ", TypeToString(type)));
    HostArray a = NewArray(t->dtype, t->shape);
    if (!t->bytes.empty()) std::memcpy(a.memory->data(), t->bytes.data(), t->bytes.size());
    m->state_strides_.push_back(RowMajorStrides(a.shape));
    m->states_.push_back(std::move(a));
    m->writes_state_ |= s.result >= 0;
  }

  const std::string info = name + ".json";
  if (!format::FileExists(info)) {
    format::WriteFileAtomic(info, m->info_);
  } else if (format::ReadFile(info, size_t{1} << 26) != m->info_) {
    throw Error(ErrorCode::kDataLoss, StrCat("'", info, "' is not the info file that was saved: it was changed or damaged. Delete it and it is made again"));
  }

  std::unique_ptr<Graph> optimized = m->graph_->Clone();
  codegen::Optimize(*optimized);
  codegen::CompileOptions o;
  o.fusion.enabled = options.fuse;
  o.backend = options.interpret ? codegen::KernelBackend(codegen::InterpretKernel) : codegen::CpuBackend();
  o.unverified_trips = options.unverified_trips == UnverifiedTrips::kAllow;
  m->executable_ = codegen::Compile(*optimized, o);

  if (options.verify) {
    std::optional<std::vector<HostArray>> given;
    if (!program.digest.empty()) given = CertificateInputs(*m->graph_, program.digest_seed);
    if (!given) {
      // The file says why it has none; an older one doesn't.
      std::string why = "only programs under Numerics::kExact that write no state have one";
      if (const auto info = nlohmann::json::parse(m->info_, nullptr, false); info.is_object())
        if (const auto c = info.find("certificate"); c != info.end() && c->is_object() && c->contains("none") && (*c)["none"].is_string()) why = (*c)["none"];
      throw Error(ErrorCode::kFailedPrecondition, StrCat("'", name, "' carries no certificate to verify: ", why, ". Load it without verify"));
    }
    std::vector<HostArray>& inputs = *given;
    std::vector<Shape> strides;
    std::vector<TensorView> views;
    for (const HostArray& a : inputs) strides.push_back(RowMajorStrides(a.shape));
    for (size_t i = 0; i < inputs.size(); ++i) views.push_back({inputs[i].memory->data(), inputs[i].dtype, inputs[i].shape, strides[i]});
    if (m->writes_state_) throw Error(ErrorCode::kFailedPrecondition, "verify: the program writes state");
    if (const std::string digest = DigestOf(m->Run(views)); digest != program.digest)
      throw Error(ErrorCode::kDataLoss, StrCat("'", name, "' does not compute here what it computed when it was saved (digest ", digest.substr(0, 16), ", saved ", program.digest.substr(0, 16), ")"));
  }
  return m;
}

std::vector<HostArray> ServedModel::Run(std::span<const TensorView> arguments) const {
  if (arguments.size() != static_cast<size_t>(graph_->num_args))
    throw Error(ErrorCode::kInvalidArgument, StrCat("'", name_, "' takes ", graph_->num_args, " arguments, got ", arguments.size()));
  std::unique_lock<std::mutex> lock(state_mutex_, std::defer_lock);
  if (writes_state_) lock.lock();
  std::vector<TensorView> in(arguments.begin(), arguments.end());
  for (size_t i = 0; i < states_.size(); ++i) in.push_back({states_[i].memory->data(), states_[i].dtype, states_[i].shape, state_strides_[i]});
  const DimEnv env = executable_->Bind(in);
  if (const int64_t bytes = executable_->PeakBytes(env); bytes > options_.max_bytes)
    throw Error(ErrorCode::kResourceExhausted, StrCat("'", name_, "' needs ", bytes, " bytes of intermediates for these sizes, more than LoadOptions.max_bytes = ", options_.max_bytes));
  HostOutputs out = AllocateOutputs(*executable_, env);
  executable_->Run(env, in, out.views);
  for (size_t s = 0; s < graph_->states.size(); ++s)
    if (const int r = graph_->states[s].result; r >= 0)
      CopyView(out.views[static_cast<size_t>(r)], {states_[s].memory->data(), states_[s].dtype, states_[s].shape, state_strides_[s]});
  std::vector<HostArray> results;
  for (size_t i = 0; i < static_cast<size_t>(graph_->num_outputs); ++i) {
    const ConcreteType& t = out.types[i];
    const Shape dense = RowMajorStrides(t.shape);
    if (dense == out.strides[i]) {
      results.push_back({t.dtype, t.shape, std::make_shared<MemoryBlock>(std::move(out.memory[i]))});
      continue;
    }
    HostArray a = NewArray(t.dtype, t.shape);
    CopyView(out.views[i], {a.memory->data(), a.dtype, a.shape, dense});
    results.push_back(std::move(a));
  }
  return results;
}

std::vector<std::pair<std::string, TensorView>> ServedModel::weights() const {
  std::vector<std::pair<std::string, TensorView>> w;
  for (size_t i = 0; i < states_.size(); ++i) w.emplace_back(graph_->states[i].name, TensorView{states_[i].memory->data(), states_[i].dtype, states_[i].shape, state_strides_[i]});
  return w;
}

std::string DigestOf(const TensorView& t) {
  const Shape shape(t.sizes.begin(), t.sizes.end());
  HostArray dense = NewArray(t.dtype, shape);
  const Shape strides = RowMajorStrides(shape);
  CopyView(t, {dense.memory->data(), t.dtype, dense.shape, strides});
  std::string text = TypeToString(ConcreteType{t.dtype, shape});
  text.append(reinterpret_cast<const char*>(dense.bytes().data()), dense.bytes().size());
  return format::Sha256(text);
}

std::string DigestOf(const std::vector<HostArray>& results) {
  std::string all;
  for (const HostArray& a : results) {
    const Shape strides = RowMajorStrides(a.shape);
    all += DigestOf(TensorView{a.memory->data(), a.dtype, a.shape, strides});
  }
  return format::Sha256(all);
}

namespace {

// Sizes near `wanted` that the facts and guards allow.
std::optional<DimEnv> SizesNear(const Graph& graph, int64_t wanted) {
  DimEnv env;
  for (Dim d : graph.Symbols()) {
    const Dim::Facts f = d.facts();
    const int64_t size = (std::clamp(wanted, f.min, f.max) + f.multiple_of - 1) / f.multiple_of * f.multiple_of;
    if (size > f.max) return std::nullopt;
    env.Set(d, size);
  }
  for (const GuardedCond& g : graph.guards)
    if (!g.condition.Eval(env)) return std::nullopt;
  return env;
}

}  // namespace

std::optional<std::vector<HostArray>> CertificateInputs(const Graph& graph, uint64_t seed) {
  std::optional<DimEnv> sizes;
  for (int64_t wanted : {3, 1, 2, 4, 5, 6, 7, 8, 12, 16, 24, 28, 32, 48, 64, 96, 128, 224, 256})
    if (!sizes) sizes = SizesNear(graph, wanted);
  if (!sizes) return std::nullopt;
  const DimEnv& env = *sizes;
  std::vector<HostArray> inputs;
  uint64_t state = seed;
  for (int i = 0; i < graph.num_args; ++i) {
    const TensorType& t = graph.body.params[static_cast<size_t>(i)]->type;
    Shape shape;
    for (Dim d : t.shape) shape.push_back(d.Eval(env));
    HostArray a = NewArray(t.dtype, shape);
    const int64_t n = NumElements(a.shape);
    std::memset(a.memory->data(), 0, a.bytes().size());
    for (int64_t k = 0; k < n; ++k) {
      const double v = static_cast<double>(NextRandom(state)) * 0x1p-52 - 1;
      if (t.dtype == kFloat32) a.memory->as<float>()[k] = static_cast<float>(v);
      if (t.dtype == kFloat64) a.memory->as<double>()[k] = v;
    }
    inputs.push_back(std::move(a));
  }
  return inputs;
}

}  // namespace sinter
