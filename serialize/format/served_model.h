#pragma once

#include <map>
#include <memory>
#include <optional>
#include <mutex>
#include <string>
#include <vector>

#include "sinter/graph/graph.h"
#include "sinter/runtime/executable.h"
#include "sinter/runtime/memory.h"
#include "sinter/serialize/format/safetensors.h"

/// A saved program, loaded to be run: needs neither the model's source nor the eager runtime.
namespace sinter {

/// What a loop may do beyond the turns that were compared with the function when it was captured.
enum class UnverifiedTrips : uint8_t { kError, kAllow };
enum class FileCheck : uint8_t {
  kFull,    ///< every byte of the weights is compared with the hash in the program file
  kHeader,  ///< the weights' header only
};

struct LoadOptions {
  FileCheck check = FileCheck::kFull;
  UnverifiedTrips unverified_trips = UnverifiedTrips::kError;
  bool fuse = true;
  bool interpret = false;   ///< no code generation
  /// Runs the certificate: inputs made from a stored seed must give the stored digest. An Error too where the file has none: programs that
  /// write state or are not kExact.
  bool verify = false;
  /// Refuses a program whose intermediates need more than this for the sizes of a call.
  int64_t max_bytes = int64_t{1} << 40;
};

/// A dense array that owns its memory.
struct HostArray {
  DType dtype = kFloat32;
  Shape shape;
  std::shared_ptr<MemoryBlock> memory;
  std::span<const std::byte> bytes() const;
};

/// Files NAME.sgraph, NAME.safetensors, NAME.json. Run may be called from many threads unless the program writes state.
class ServedModel {
 public:
  /// A missing, cut off or changed file is an Error that names it; nothing else happens.
  static std::shared_ptr<ServedModel> Load(const std::string& name, const LoadOptions& options = {});

  /// Runs entry 0. Arguments may have any strides; results are row-major.
  std::vector<HostArray> Run(std::span<const TensorView> arguments) const;

  const Graph& graph() const { return *graph_; }
  const Executable& executable() const { return *executable_; }
  /// Content of the info file.
  const std::string& info() const { return info_; }
  /// Weights by name, as views of the model's memory.
  std::vector<std::pair<std::string, TensorView>> weights() const;

 private:
  ServedModel() = default;
  std::string name_;
  std::string info_;
  std::unique_ptr<Graph> graph_;
  std::shared_ptr<const Executable> executable_;
  std::vector<HostArray> states_;
  std::vector<Shape> state_strides_;
  LoadOptions options_;
  mutable std::mutex state_mutex_;
  bool writes_state_ = false;
};

/// The name of a saved program: "m" of "m" and of "m.sgraph".
std::string ProgramName(std::string_view name);

/// SHA-256 over dtype, shape and row-major bytes.
std::string DigestOf(const TensorView& t);
/// The certificate's inputs for a graph: sizes and values that depend on the graph and the seed alone. Nothing where no sizes that are tried
/// meet its guards.
std::optional<std::vector<HostArray>> CertificateInputs(const Graph& graph, uint64_t seed);
/// One digest over results.
std::string DigestOf(const std::vector<HostArray>& results);

}  // namespace sinter
