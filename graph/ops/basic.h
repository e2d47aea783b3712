#pragma once

/// The ops that the rules of other ops are written in.
#include "sinter/graph/ops/arithmetic.h"
#include "sinter/graph/ops/constant.h"
#include "sinter/graph/ops/reduce.h"
#include "sinter/graph/ops/views.h"
