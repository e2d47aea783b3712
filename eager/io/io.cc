#include "sinter/eager/io/io.h"

#include <set>

#include "sinter/eager/creation.h"
#include "sinter/eager/grad_mode.h"
#include "sinter/eager/recorder.h"
#include "sinter/graph/strings.h"
#include "sinter/serialize/format/npy.h"
#include "sinter/serialize/format/safetensors.h"

namespace sinter {
namespace {

// A file would be read or written once, when the function is captured, and its content frozen into the program.
void RefuseInCapture(std::string_view what) {
  if (Recorder::Current() != nullptr)
    throw Error(ErrorCode::kFailedPrecondition, StrCat(what, " can't be called while a function is captured; call it outside and pass the tensors as arguments"));
}

Tensor Dense(const Tensor& t) {
  NoGradGuard no_grad;
  return t.detach().contiguous();
}

std::span<const std::byte> Bytes(const Tensor& dense) {
  const TensorImpl& i = dense.impl();
  return {i.data(), static_cast<size_t>(i.numel()) * static_cast<size_t>(ItemSize(i.dtype))};
}

// Puts values into cells by name, all or none.
void Restore(std::string_view what, const NamedTensors& cells, const std::string& path, bool strict) {
  RefuseInCapture("load_state");
  const format::Safetensors file(path);
  std::string faults;
  std::set<std::string> known;
  std::vector<std::pair<Tensor, Tensor>> writes;
  for (const auto& [name, cell] : cells) {
    known.insert(name);
    const format::NamedTensor* found = file.Find(name);
    if (found == nullptr) {
      if (strict) StrAppend(&faults, "\n  '", name, "' (", cell.TypeString(), ") is missing");
    } else if (found->dtype != cell.dtype() || found->shape != cell.shape()) {
      StrAppend(&faults, "\n  '", name, "' is ", TypeToString(ConcreteType{found->dtype, found->shape}), " in the file, ", cell.TypeString(), " here");
    } else {
      writes.emplace_back(cell, from_blob(found->bytes.data(), found->shape, found->dtype));
    }
  }
  for (const format::NamedTensor& t : file.tensors())
    if (strict && !known.contains(t.name)) StrAppend(&faults, "\n  '", t.name, "' is in the file and unknown here");
  if (!faults.empty()) throw Error(ErrorCode::kInvalidArgument, StrCat("load_state: '", path, "' does not fit this ", what, "; nothing was changed:", faults));
  NoGradGuard no_grad;
  for (auto& [cell, value] : writes) cell.set_data(std::move(value));
}

}  // namespace

void save_npy(const Tensor& t, const std::string& path) {
  RefuseInCapture("save_npy");
  const Tensor dense = Dense(t);
  format::WriteNpy(path, dense.dtype(), dense.shape(), Bytes(dense));
}

Tensor load_npy(const std::string& path) {
  RefuseInCapture("load_npy");
  const format::NpyArray a = format::ReadNpy(path);
  return from_blob(a.bytes.data(), a.shape, a.dtype);
}

void save_tensors(const NamedTensors& tensors, const std::string& path, const std::map<std::string, std::string>& metadata) {
  RefuseInCapture("save_tensors");
  std::vector<Tensor> keep;
  std::vector<format::NamedTensor> named;
  std::set<std::string> names;
  for (const auto& [name, t] : tensors) {
    if (!names.insert(name).second) throw Error(ErrorCode::kInvalidArgument, StrCat("save_tensors: two tensors are named '", name, "'"));
    if (!t.defined()) throw Error(ErrorCode::kInvalidArgument, StrCat("save_tensors: the tensor '", name, "' is undefined"));
    keep.push_back(Dense(t));
    named.push_back({name, t.dtype(), t.shape(), Bytes(keep.back())});
  }
  format::WriteSafetensors(path, std::move(named), metadata);
}

std::map<std::string, Tensor> load_tensors(const std::string& path) {
  RefuseInCapture("load_tensors");
  const format::Safetensors file(path);
  std::map<std::string, Tensor> tensors;
  for (const format::NamedTensor& t : file.tensors()) tensors.emplace(t.name, from_blob(t.bytes.data(), t.shape, t.dtype));
  return tensors;
}

namespace nn {
namespace {
NamedTensors CellsOf(Module& module) {
  NamedTensors cells = module.named_parameters();
  for (auto& b : module.named_buffers()) cells.push_back(std::move(b));
  return cells;
}
}  // namespace

void save_state(Module& module, const std::string& path) { save_tensors(CellsOf(module), path); }
void load_state(Module& module, const std::string& path, LoadStateOptions options) { Restore("module", CellsOf(module), path, options.strict); }
}  // namespace nn

namespace optim {
void save_state(Optimizer& optimizer, const std::string& path) { save_tensors(optimizer.named_state(), path); }
void load_state(Optimizer& optimizer, const std::string& path) { Restore("optimizer", optimizer.named_state(), path, true); }
}  // namespace optim

}  // namespace sinter
