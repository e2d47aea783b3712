"""Checks which layer depends on which, by bazel query and by the text of the includes."""

import os
import re
import subprocess
import sys

# A layer may depend on itself and on those before it.
LAYERS = ["graph", "runtime", "codegen", "serialize/format", "eager", "tracer", "serialize/jit", "cli"]
SERVED = ["eager", "tracer"]  # what `//cli:sinter` must do without


def layer_of(package):
    for layer in sorted(LAYERS, key=len, reverse=True):
        if package == layer or package.startswith(layer + "/"):
            return layer
    return None


def main():
    bad = []
    packages = subprocess.run(["bazel", "query", "//...", "--output=package"], capture_output=True, text=True, check=True).stdout.split()
    for package in packages:
        layer = layer_of(package)
        if layer is None:
            continue
        out = subprocess.run(["bazel", "query", "deps(//%s:all)" % package, "--output=package"], capture_output=True, text=True, check=True)
        for dep in out.stdout.split():
            other = layer_of(dep)
            if other is not None and LAYERS.index(other) > LAYERS.index(layer):
                bad.append("//%s depends on //%s, which is above it" % (package, dep))
    out = subprocess.run(["bazel", "query", "deps(//cli:sinter)", "--output=package"], capture_output=True, text=True, check=True)
    for dep in out.stdout.split():
        if layer_of(dep) in SERVED:
            bad.append("//cli:sinter, which serves programs, depends on //%s" % dep)
    for root, folders, files in os.walk("."):
        folders[:] = [f for f in folders if not f.startswith((".", "bazel-"))]
        layer = layer_of(os.path.relpath(root, "."))
        if layer is None:
            continue
        for name in files:
            if not name.endswith((".h", ".cc", ".inc")):
                continue
            with open(os.path.join(root, name)) as f:
                for include in re.findall(r'#include "sinter/([^"]+)"', f.read()):
                    other = layer_of(os.path.dirname(include))
                    if other is not None and LAYERS.index(other) > LAYERS.index(layer):
                        bad.append("%s includes %s" % (os.path.join(root, name), include))
    for line in sorted(set(bad)):
        print("arrow: " + line)
    sys.exit(1 if bad else 0)


main()
