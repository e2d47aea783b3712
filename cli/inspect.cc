#include <cstdio>

#include "sinter/cli/commands.h"
#include "sinter/serialize/format/served_model.h"

namespace sinter::cli {

int Inspect(const std::vector<std::string>& args) {
  if (args.size() != 1) throw Error(ErrorCode::kInvalidArgument, "inspect: give the name of one program");
  LoadOptions options;
  options.interpret = true;
  std::shared_ptr<ServedModel> model = ServedModel::Load(args[0], options);
  std::fputs(model->info().c_str(), stdout);
  std::fputs(Print(model->graph(), true).c_str(), stdout);
  return 0;
}

}  // namespace sinter::cli
