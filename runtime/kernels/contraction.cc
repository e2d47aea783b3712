#include "sinter/runtime/kernels/contraction.h"

#include <algorithm>

#include "sinter/graph/numerics.h"
#include "sinter/runtime/cpu_info.h"
#include "sinter/runtime/memory.h"
#include "sinter/runtime/thread_pool.h"

namespace sinter::kernels {
namespace {

constexpr int64_t kBlock = kContractionBlock;
constexpr int kRowBlock = 96;  // Rows whose packed block (96 KiB in f32) stays in the second-level cache.
constexpr int kRowBlockPacking = 256;         // The same where each block packs the right operand for itself.
constexpr int64_t kMaxPackedBytes = 8 << 20;  // Of a right operand that is packed on the fly for many rows.
constexpr int64_t kEpilogueColumns = 512;     // Columns that are finished together.
constexpr int kTableOnStack = 128;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
const TileSet<T>& ActiveTiles();
template <>
const TileSet<float>& ActiveTiles() {
  return ActiveIsa() == IsaLevel::kV4 ? kTilesV4F32 : kTilesV3F32;
}
template <>
const TileSet<double>& ActiveTiles() {
  return ActiveIsa() == IsaLevel::kV4 ? kTilesV4F64 : kTilesV3F64;
}

/// How the output is cut into tasks.
struct Grid {
  int64_t row_blocks, rows;       // `rows` in each block but the last
  int64_t column_blocks, panels;  // `panels` in each block but the last
};

/// A rough time on one core, in microseconds: enough to decide on threads.
template <class T>
double EstimateMicroseconds(const Contraction<T>& x) {
  const double gflops = (ActiveIsa() == IsaLevel::kV4 ? 160.0 : 80.0) * 4 / sizeof(T);
  const double arithmetic =
      2.0 * static_cast<double>(x.m) * static_cast<double>(x.n) * static_cast<double>(x.k) / gflops;
  const double traffic = static_cast<double>(x.k) * static_cast<double>(x.n) * sizeof(T) / 100.0;
  return std::max(arithmetic, traffic) / 1000.0;
}

template <class T>
Grid PlanGrid(const Contraction<T>& x, const TileSet<T>& tiles, int panel_step) {
  const int64_t panels = CeilDiv(x.n, kPanelWidth<T>);
  const bool packs = x.packed == nullptr && x.direct == nullptr;
  const int64_t row_limit = packs && x.m <= kRowBlockPacking ? kRowBlockPacking : kRowBlock;
  Grid grid{CeilDiv(x.m, row_limit), 0, 1, 0};
  const double time = EstimateMicroseconds(x);
  const int threads = InParallelRegion() || time < 5 ? 1 : NumThreads();
  if (threads > 1) {
    // Enough tasks that threads end together, none shorter than some 10 us.
    const int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(time / 10), threads, 4 * threads);
    grid.column_blocks =
        std::clamp<int64_t>(CeilDiv(wanted, grid.row_blocks), 1, CeilDiv(panels, panel_step));
    if (grid.row_blocks * grid.column_blocks < wanted) {
      grid.row_blocks = std::clamp<int64_t>(CeilDiv(wanted, grid.column_blocks), grid.row_blocks,
                                            CeilDiv(x.m, tiles.max_rows));
    }
  }
  grid.rows = CeilDiv(x.m, grid.row_blocks);
  if (grid.row_blocks > 1)
    grid.rows = std::min<int64_t>(CeilDiv(grid.rows, tiles.max_rows) * tiles.max_rows, row_limit);
  grid.row_blocks = CeilDiv(x.m, grid.rows);
  grid.panels = CeilDiv(CeilDiv(panels, grid.column_blocks), panel_step) * panel_step;
  grid.column_blocks = CeilDiv(panels, grid.panels);
  return grid;
}

/// Values [k_begin, k_end) of the contraction, for panels [panel_begin, panel_end). Limits of k are multiples
/// of kBlock or its end.
struct Range {
  int64_t k_begin, k_end;
  int64_t panel_begin, panel_end;
};

/// Everything a task needs.
template <class T>
class Engine {
 public:
  explicit Engine(const Contraction<T>& x) : x_(x), tiles_(ActiveTiles<T>()), panels_(CeilDiv(x.n, kWidth)) {
    const int64_t rows = std::min<int64_t>(x.m, tiles_.max_rows);
    while (step_ < 3 && tiles_.fn[rows][step_ + 1] != nullptr && (int64_t{1} << step_) < panels_) ++step_;
    grid_ = PlanGrid(x, tiles_, 1 << step_);
  }

  void Run() {
    if (x_.packed != nullptr || x_.direct != nullptr || grid_.row_blocks == 1) {
      RunGrid({0, x_.k, 0, panels_}, x_.packed);
      return;
    }
    RunPackingFirst();
  }

 private:
  static constexpr int kWidth = kPanelWidth<T>;

  /// Packs parts of the right operand that fit a cache, with all threads, and uses each for all rows.
  void RunPackingFirst() {
    const int64_t k_part = std::min<int64_t>(x_.k, 16 * kBlock);
    const int64_t fitting =
        std::max<int64_t>(kMaxPackedBytes / (k_part * kWidth * static_cast<int64_t>(sizeof(T))), 8);
    const int64_t parts = CeilDiv(panels_, fitting);
    const int64_t panel_part = CeilDiv(CeilDiv(panels_, parts), 8) * 8;
    MemoryBlock buffer(ByteCount(std::min(panel_part, panels_) * kWidth * k_part, sizeof(T)));
    for (int64_t panel = 0; panel < panels_; panel += panel_part) {
      for (int64_t k = 0; k < x_.k; k += k_part) {
        const Range range{k, std::min(k + k_part, x_.k), panel, std::min(panel + panel_part, panels_)};
        Pack(range, buffer.as<T>());
        RunGrid(range, buffer.as<T>());
      }
    }
  }

  void Pack(const Range& range, T* out) {
    const int64_t panels = range.panel_end - range.panel_begin;
    const int64_t blocks = CeilDiv(range.k_end - range.k_begin, kBlock);
    const int64_t grain = 1 + (1 << 14) / (kWidth * std::min(kBlock, range.k_end - range.k_begin));
    ParallelRange(blocks * panels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i / panels, j = i % panels;
        const int64_t k = range.k_begin + block * kBlock;
        const int kc = static_cast<int>(std::min(kBlock, range.k_end - k));
        x_.panels->Pack(k, kc, range.panel_begin + j, 1, out + (block * kBlock * panels + j * kc) * kWidth);
      }
    });
  }

  void RunGrid(const Range& range, const T* packed) {
    const int64_t panels = range.panel_end - range.panel_begin;
    const int64_t columns = CeilDiv(panels, grid_.panels);
    auto task = [&](int64_t i) {
      const int64_t row = i / columns * grid_.rows, panel = range.panel_begin + i % columns * grid_.panels;
      RunTask(range, packed, row, static_cast<int>(std::min(grid_.rows, x_.m - row)), panel,
              std::min(panel + grid_.panels, range.panel_end));
    };
    const int64_t tasks = grid_.row_blocks * columns;
    if (tasks == 1) {
      task(0);
    } else {
      ParallelFor(tasks, task);
    }
  }

  /// One block of rows against panels [panel0, panel1).
  void RunTask(const Range& range, const T* packed, int64_t row0, int rows, int64_t panel0, int64_t panel1) {
    const int64_t pointers = x_.rows->pointers_per_row() * rows;
    const int64_t kc_max = std::min(kBlock, range.k_end - range.k_begin);
    const T* small_table[kTableOnStack];
    const T** table = small_table;
    MemoryBlock table_block, row_block, panel_block;
    if (pointers > kTableOnStack) {
      table_block = MemoryBlock(static_cast<size_t>(pointers) * sizeof(T*));
      table = table_block.as<const T*>();
    }
    if (x_.rows->packs()) row_block = MemoryBlock(static_cast<size_t>(rows * kc_max) * sizeof(T));
    const bool has_tail = x_.direct != nullptr && x_.n % kWidth != 0 && panel1 == panels_;
    if (packed == nullptr && (x_.direct == nullptr || has_tail)) {
      panel_block = MemoryBlock(static_cast<size_t>((kc_max << step_) * kWidth) * sizeof(T));
    }
    x_.rows->Start(row0, rows, table);
    for (int64_t k = range.k_begin; k < range.k_end; k += kBlock) {
      const int kc = static_cast<int>(std::min(kBlock, range.k_end - k));
      const RowPointers<T> a = x_.rows->Block(row0, rows, k, kc, table, row_block.template as<T>());
      for (int64_t panel = panel0; panel < panel1;) {
        const int64_t end = std::min(panel + kEpilogueColumns / kWidth, panel1);
        for (int64_t first = panel; panel < end;) {
          const int64_t next = std::min(panel + (int64_t{1} << step_), end);
          RunPanels(range, packed, a, row0, rows, k, kc, panel, next, panel_block.template as<T>());
          panel = next;
          if (panel == end && k + kc == x_.k) Finish(row0, rows, first, end);
        }
      }
    }
  }

  /// Panels [panel, panel_end), at most 2^step_ of them, for all rows of the block.
  void RunPanels(const Range& range, const T* packed, const RowPointers<T>& a, int64_t row0, int rows,
                 int64_t k, int kc, int64_t panel, int64_t panel_end, T* buffer) {
    const int64_t panels = range.panel_end - range.panel_begin;
    TileArgs<T> args{};
    args.a_next = a.next;
    args.a_offset = a.offset;
    args.a_length = a.length;
    args.c_row = x_.c_row;
    args.k = kc;
    args.first = k == 0;
    args.b_row = kWidth;
    args.b_panel = static_cast<int64_t>(kc) * kWidth;
    int shift = step_;
    for (int64_t count; panel < panel_end; panel += count) {
      while ((int64_t{1} << shift) > panel_end - panel) --shift;
      count = int64_t{1} << shift;
      const bool is_tail = panel + count == panels_ && x_.n % kWidth != 0;
      if (packed != nullptr) {
        args.b = packed + ((k - range.k_begin) * panels + (panel - range.panel_begin) * kc) * kWidth;
      } else if (x_.direct != nullptr && !is_tail) {
        args.b = x_.direct + k * x_.direct_row + panel * kWidth;
        args.b_row = x_.direct_row;
        args.b_panel = kWidth;
      } else {
        x_.panels->Pack(k, kc, panel, count, buffer);
        args.b = buffer;
        args.b_row = kWidth;
        args.b_panel = static_cast<int64_t>(kc) * kWidth;
      }
      args.columns = static_cast<int>(std::min<int64_t>(count * kWidth, x_.n - panel * kWidth));
      RunRows(args, a.a, row0, rows, panel, shift);
    }
  }

  /// The block's rows in tiles of nearly equal height.
  void RunRows(TileArgs<T>& args, const T* const* a, int64_t row0, int rows, int64_t panel, int shift) {
    const int count = static_cast<int>(CeilDiv(rows, tiles_.max_rows));
    for (int i = 0, row = 0; i < count; ++i) {
      const int height = (rows - row + count - i - 1) / (count - i);
      args.a = a + row;
      args.c = x_.c + (row0 + row) * x_.c_row + panel * kWidth;
      tiles_.fn[height][shift](args);
      row += height;
    }
  }

  void Finish(int64_t row0, int rows, int64_t panel, int64_t panel_end) {
    if (x_.epilogue.fn == nullptr) return;
    const int64_t column = panel * kWidth;
    x_.epilogue.fn(x_.epilogue.context, row0, rows, column, std::min(panel_end * kWidth, x_.n) - column);
  }

  const Contraction<T>& x_;
  const TileSet<T>& tiles_;
  const int64_t panels_;
  int step_ = 0;  // 2^step_ panels at a time
  Grid grid_{};
};

}  // namespace

template <class T>
void Contract(const Contraction<T>& x) {
  if (x.m <= 0 || x.n <= 0) return;
  if (x.k <= 0) {
    for (int64_t i = 0; i < x.m; ++i) std::fill_n(x.c + i * x.c_row, x.n, T{0});
    if (x.epilogue.fn != nullptr) x.epilogue.fn(x.epilogue.context, 0, x.m, 0, x.n);
    return;
  }
  Engine<T>(x).Run();
}

template <class T>
int64_t PackedElements(int64_t k, int64_t n) {
  return k * CeilDiv(n, kPanelWidth<T>) * kPanelWidth<T>;
}

template <class T>
void PackAll(const PanelSource<T>& source, int64_t k, int64_t n, T* out) {
  constexpr int kWidth = kPanelWidth<T>;
  const int64_t panels = CeilDiv(n, kWidth);
  if (k <= 0 || panels == 0) return;
  const int64_t grain = 1 + (1 << 15) / (kWidth * std::min(kBlock, k));
  ParallelRange(CeilDiv(k, kBlock) * panels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k0 = i / panels * kBlock, j = i % panels;
      const int kc = static_cast<int>(std::min(kBlock, k - k0));
      source.Pack(k0, kc, j, 1, out + (k0 * panels + j * kc) * kWidth);
    }
  });
}

template void Contract(const Contraction<float>&);
template void Contract(const Contraction<double>&);
template int64_t PackedElements<float>(int64_t, int64_t);
template int64_t PackedElements<double>(int64_t, int64_t);
template void PackAll(const PanelSource<float>&, int64_t, int64_t, float*);
template void PackAll(const PanelSource<double>&, int64_t, int64_t, double*);

}  // namespace sinter::kernels
