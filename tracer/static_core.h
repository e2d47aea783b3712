#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sinter/eager/tensor.h"
#include "sinter/runtime/function_ref.h"
#include "sinter/tracer/entry.h"
#include "sinter/tracer/input_spec.h"

namespace sinter {

/// When a compiled program's results are compared with those of the function run eagerly on the same arguments and state. A difference is
/// an Error, and nothing of the call is committed. Costs the eager run; for tests and for finding a fault.
enum class VerifyMode : uint8_t {
  kOff,
  kFirstCall,  ///< of every entry
  kAlways,     ///< also finds host values (a global threshold) that changed since the capture, and paths that were never compared
};

struct StaticOptions {
  /// How exactly compiled results must equal eager ones.
  Numerics numerics = Numerics::kDefault;
  /// Any size along kDynamic dimensions; more entries than this (other host arguments, flags) replace the least used.
  int max_entries = 16;
  /// false: one kernel per op, for comparison.
  bool fuse = true;
  VerifyMode verify = VerifyMode::kOff;
  /// Name of the program in prints and files.
  std::string name = "main";
};

namespace tracer {

/// What is behind a StaticFunction whatever its signature. Calls from many threads are fine as far as the state they share allows.
class StaticCore {
 public:
  /// `names`: of the cells of a module, if the function is one.
  StaticCore(std::vector<InputSpec> specs, StaticOptions options, std::optional<CellNames> names);

  /// Results of the function. `flat` makes the function itself, with host arguments bound; `host_key` tells those apart.
  std::vector<Tensor> Call(std::span<const Tensor* const> arguments, const std::string& host_key, FunctionRef<FlatFunction()> flat);
  /// The entry for these arguments, captured and compiled now if need be.
  std::shared_ptr<Entry> Prepare(const std::vector<Tensor>& arguments, const std::string& host_key, const FlatFunction& flat);
  /// The same from the specs alone.
  std::shared_ptr<Entry> PrepareFromSpecs(size_t num_arguments, const FlatFunction& flat);

  std::vector<std::shared_ptr<Entry>> entries() const;
  /// The one program for the state as it is (train or eval, what is frozen); null if none. Throws Error if there are several, for other
  /// argument types or host arguments.
  std::shared_ptr<Entry> Present() const;
  void Clear();
  std::string Explain() const;
  const StaticOptions& options() const { return options_; }
  const CellNames& names() const { return names_; }

 private:
  std::vector<TensorType> TypesFor(const std::vector<Tensor>& arguments, DimEnv& hints) const;
  /// The entry of the last call if it serves these arguments as well; cheap.
  std::shared_ptr<Entry> Again(std::span<const Tensor* const> arguments, const std::string& host_key) const;
  /// `sizes`: of the call, by the symbols of `types`; null: any that the types allow.
  std::shared_ptr<Entry> Find(const std::vector<TensorType>& types, const DimEnv* sizes, const std::string& host_key, std::string* miss) const;
  void Publish(const std::shared_ptr<Entry>& e, const std::string& why);
  std::shared_ptr<Entry> Capture(std::vector<TensorType> types, const DimEnv& hints, const std::string& host_key, const FlatFunction& flat);
  /// Compares the loops of a program with the function for more turns than before, and lets them run that far. Returns the entry to go on
  /// with: another one where the function is not what it was when it was captured.
  std::shared_ptr<Entry> VerifyMoreTurns(const std::shared_ptr<Entry>& entry, const std::vector<Tensor>& arguments, const FlatFunction& flat);
  /// `verify`: the function to compare with, or null.
  std::vector<Tensor> RunEntry(const std::shared_ptr<Entry>& shared, std::span<const Tensor* const> arguments, const FlatFunction* verify);
  std::string NameOf(const External& e, size_t index) const;

  std::vector<InputSpec> specs_;
  StaticOptions options_;
  bool of_module_;
  bool strict_ = false;             // of any InputSpec
  CellNames names_;
  mutable std::mutex mutex_;        // entries_, log_
  std::mutex capture_mutex_;        // one capture at a time
  std::vector<std::shared_ptr<Entry>> entries_;
  std::shared_ptr<Entry> last_;
  std::vector<std::string> log_;
  std::atomic<uint64_t> clock_{0};
};

}  // namespace tracer
}  // namespace sinter
