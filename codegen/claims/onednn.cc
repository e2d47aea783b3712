#include <dnnl.h>
#include <omp.h>

#include <atomic>

#include "sinter/codegen/claims/claims.h"
#include "sinter/graph/ops/contraction.h"
#include "sinter/runtime/cpu_info.h"
#include "sinter/runtime/thread_pool.h"

namespace sinter::codegen {
namespace {

// Below this many multiply-adds the library's call costs more than it gains.
constexpr int64_t kWorthwhile = int64_t{1} << 22;

bool SupportsMatmul(const Node& n) {
  // oneDNN 2.6 is faster with AVX-512 only; with AVX2 the own kernel is.
  return ActiveIsa() == IsaLevel::kV4 && n.inputs[0]->type.dtype == kFloat32 && n.inputs[1]->type.dtype == kFloat32 && n.inputs[0]->type.rank() == 2 &&
         n.inputs[1]->type.rank() == 2;
}

// A matrix as sgemm wants it: unit stride along one dimension.
struct Operand {
  char transposed = 'N';
  int64_t leading = 0;
};
bool Describe(const TensorView& v, Operand& o) {
  if (v.strides[1] == 1 && v.strides[0] >= v.sizes[1]) return o = {'N', v.strides[0]}, true;
  if (v.strides[0] == 1 && v.strides[1] >= v.sizes[0]) return o = {'T', v.strides[1]}, true;
  return false;
}

// The library's calls are single-threaded while this lives; what the thread had set for its own OpenMP code comes back.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

void RunMatmul(const OpDef& op, const AttrBox* attrs, std::span<const TensorView> in, std::span<const TensorView> out) {
  const int64_t m = in[0].sizes[0], k = in[0].sizes[1], n = in[1].sizes[1];
  Operand a, b;
  bool done = m * n * k >= kWorthwhile && Describe(in[0], a) && Describe(in[1], b) && out[0].strides[1] == 1;
  if (done) {
    std::atomic<bool> refused{false};
    // The work is split here; a call is single-threaded, so that no second team of threads fights for the cores.
    const int64_t grain = std::max<int64_t>(1, (m + NumThreads() - 1) / NumThreads());
    ParallelRange(m, grain, [&](int64_t begin, int64_t end) {
      const OneThread one;
      const float* rows = in[0].as<const float>() + (a.transposed == 'N' ? begin * a.leading : begin);
      const dnnl_status_t status = dnnl_sgemm(a.transposed, b.transposed, end - begin, n, k, 1.0f, rows, a.leading, in[1].as<const float>(), b.leading, 0.0f,
                                              out[0].as<float>() + begin * out[0].strides[0], out[0].strides[0]);
      if (status != dnnl_success) refused = true;
    });
    done = !refused;
  }
  if (!done) kernels::FindKernel(op)->run(op, attrs, in, out);
}

}  // namespace

std::vector<Claim> OneDnnClaims() { return {{&DefOf<ops::Matmul>(), "oneDNN", SupportsMatmul, RunMatmul}}; }

}  // namespace sinter::codegen
