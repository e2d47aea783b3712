#include <cstdio>
#include <cstring>

#include "sinter/cli/commands.h"
#include "sinter/graph/strings.h"
#include "sinter/runtime/strides.h"
#include "sinter/serialize/format/npy.h"
#include "sinter/serialize/format/served_model.h"

namespace sinter::cli {
namespace {

double Element(DType t, const std::byte* p, int64_t i) {
  switch (t) {
    case DType::kFloat32: return reinterpret_cast<const float*>(p)[i];
    case DType::kFloat64: return reinterpret_cast<const double*>(p)[i];
    case DType::kInt32: return reinterpret_cast<const int32_t*>(p)[i];
    case DType::kInt64: return static_cast<double>(reinterpret_cast<const int64_t*>(p)[i]);
    case DType::kUInt8: return reinterpret_cast<const uint8_t*>(p)[i];
    case DType::kInt8: return reinterpret_cast<const int8_t*>(p)[i];
    default: throw Error(ErrorCode::kInvalidArgument, StrCat("--labels: elements of type ", DTypeName(t), " are no class numbers"));
  }
}

// The library's own message would speak to whoever can capture the program again; here it is to whoever has the files.
void CheckInputs(const ServedModel& model, const std::string& name, const std::vector<std::string>& paths, const std::vector<format::NpyArray>& arrays) {
  const Graph& g = model.graph();
  if (arrays.size() != static_cast<size_t>(g.num_args))
    throw Error(ErrorCode::kInvalidArgument, StrCat("'", name, "' takes ", g.num_args, " inputs, got ", arrays.size(), "; give --input FILE.npy once for each, in their order (sinter inspect ", name, " lists them)"));
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Value& want = *g.body.params[i];
    const TensorType& type = want.type;
    auto fail = [&](const std::string& why) {
      throw Error(ErrorCode::kInvalidArgument, StrCat("input ", i, want.name.empty() ? "" : " '" + want.name + "'", " from '", paths[i], "' is ", TypeToString(ConcreteType{arrays[i].dtype, arrays[i].shape}),
                                                      ", '", name, "' takes ", TypeToString(type), ": ", why));
    };
    if (arrays[i].dtype != type.dtype) fail("the element types differ; convert the array");
    if (static_cast<int>(arrays[i].shape.size()) != type.rank()) fail("the numbers of dimensions differ");
    for (int d = 0; d < type.rank(); ++d)
      if (type.shape[d].is_const() && type.shape[d].value() != arrays[i].shape[static_cast<size_t>(d)])
        fail(StrCat("dimension ", d, " must be ", type.shape[d].value(), "; the program was saved for that size only (with its source: kDynamic in the InputSpec, and save it again)"));
  }
}

std::vector<HostArray> RunModel(const ServedModel& model, const std::vector<TensorView>& views) {
  try {
    return model.Run(views);
  } catch (const TripLimit& e) {
    // The same fault, with the remedy that there is on a command line.
    throw Error(e.code(), StrCat(e.message().substr(0, e.message().find(". Load with")), ". Give --allow-unverified-trips to accept that"));
  }
}

void PrintAccuracy(const HostArray& scores, const format::NpyArray& labels) {
  if (scores.shape.size() != 2 || labels.shape.size() != 1 || labels.shape[0] != scores.shape[0])
    throw Error(ErrorCode::kInvalidArgument, StrCat("--labels: labels ", ShapeToString(labels.shape), " don't belong to scores ", ShapeToString(scores.shape), "; expected [n] and [n, classes]"));
  int64_t right = 0;
  const int64_t classes = scores.shape[1];
  for (int64_t i = 0; i < scores.shape[0]; ++i) {
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c)
      if (Element(scores.dtype, scores.bytes().data(), i * classes + c) > Element(scores.dtype, scores.bytes().data(), i * classes + best)) best = c;
    right += static_cast<double>(best) == Element(labels.dtype, labels.bytes.data(), i);
  }
  std::printf("accuracy %.4f (%lld of %lld)\n", static_cast<double>(right) / static_cast<double>(std::max<int64_t>(1, scores.shape[0])), static_cast<long long>(right),
              static_cast<long long>(scores.shape[0]));
}

}  // namespace

int Run(const std::vector<std::string>& args) {
  std::string name, labels, output;
  std::vector<std::string> inputs;
  LoadOptions options;
  for (size_t i = 0; i < args.size(); ++i) {
    auto next = [&]() -> const std::string& {
      if (i + 1 >= args.size()) throw Error(ErrorCode::kInvalidArgument, StrCat(args[i], " needs a file"));
      return args[++i];
    };
    if (args[i] == "--input") inputs.push_back(next());
    else if (args[i] == "--labels") labels = next();
    else if (args[i] == "--output") output = next();
    else if (args[i] == "--allow-unverified-trips") options.unverified_trips = UnverifiedTrips::kAllow;
    else if (args[i] == "--interpret") options.interpret = true;
    else if (name.empty() && !args[i].starts_with("--")) name = args[i];
    else throw Error(ErrorCode::kInvalidArgument, StrCat("run: unknown argument '", args[i], "'"));
  }
  if (name.empty()) throw Error(ErrorCode::kInvalidArgument, "run: which program? give its name");
  std::shared_ptr<ServedModel> model = ServedModel::Load(name, options);
  std::vector<format::NpyArray> arrays;
  std::vector<Shape> strides;
  std::vector<TensorView> views;
  for (const std::string& path : inputs) arrays.push_back(format::ReadNpy(path));
  CheckInputs(*model, name, inputs, arrays);
  for (const format::NpyArray& a : arrays) strides.push_back(RowMajorStrides(a.shape));
  for (size_t i = 0; i < arrays.size(); ++i) views.push_back({arrays[i].bytes.data(), arrays[i].dtype, arrays[i].shape, strides[i]});
  std::vector<HostArray> results = RunModel(*model, views);
  for (size_t i = 0; i < results.size(); ++i) {
    const Shape s = RowMajorStrides(results[i].shape);
    std::printf("result %zu %s digest %s\n", i, TypeToString(ConcreteType{results[i].dtype, results[i].shape}).c_str(),
                DigestOf(TensorView{results[i].memory->data(), results[i].dtype, results[i].shape, s}).c_str());
  }
  if (!labels.empty()) PrintAccuracy(results.at(0), format::ReadNpy(labels));
  if (!output.empty()) format::WriteNpy(output, results.at(0).dtype, results.at(0).shape, results.at(0).bytes());
  return 0;
}

}  // namespace sinter::cli
