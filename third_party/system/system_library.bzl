"""Repository rules that bind libraries installed on the system: headers by symlink, binaries by linkopts."""

_BUILD = """
cc_library(
    name = "lib",
    hdrs = glob(["include/**"], exclude = ["include/**/* *"], allow_empty = True),
    includes = ["include"],
    defines = {defines},
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
)
"""

def _missing(ctx, path):
    fail("%s needs %s: install the package %s (tools/setup does)" % (ctx.name, path, ctx.attr.package))

def _system_library_impl(ctx):
    for name, target in ctx.attr.headers.items():
        if not ctx.path(target).exists:
            _missing(ctx, target)
        if name == ctx.attr.arch_headers:
            # Two folders under one name: link the files one by one.
            for folder in [target, "/usr/include/x86_64-linux-gnu/" + name]:
                for entry in ctx.path(folder).readdir():
                    ctx.symlink(entry, "include/%s/%s" % (name, entry.basename))
        else:
            ctx.symlink(target, "include/" + name)
    for target in ctx.attr.files:
        if not ctx.path(target).exists:
            _missing(ctx, target)
        ctx.symlink(target, "include/" + target.split("/")[-1])
    ctx.file("BUILD.bazel", _BUILD.format(defines = [], linkopts = repr(ctx.attr.linkopts)))

system_library = repository_rule(
    implementation = _system_library_impl,
    local = True,
    attrs = {
        "headers": attr.string_dict(),
        "files": attr.string_list(),
        "arch_headers": attr.string(),
        "linkopts": attr.string_list(),
        "package": attr.string(mandatory = True),
    },
)

def _cuda_headers_impl(ctx):
    # An installed toolkit, else what tools/setup unpacked from NVIDIA's wheels, else none: then CUDA is off.
    candidates = [ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/include", str(ctx.path(Label("//:WORKSPACE")).dirname) + "/.cache/cuda/include"]
    for include in candidates:
        if ctx.path(include + "/nvrtc.h").exists and ctx.path(include + "/cuda.h").exists:
            for header in ctx.path(include).readdir():
                if header.basename in ["cuda.h", "nvrtc.h"]:
                    ctx.symlink(header, "include/" + header.basename)
            folder = include[:-len("/include")]
            ctx.file("BUILD.bazel", _BUILD.format(
                defines = ["SINTER_HAVE_NVRTC=1", 'SINTER_CUDA_HOME=\\"%s\\"' % folder],
                linkopts = ["-ldl"],
            ))
            return
    ctx.file("include/no_cuda", "")
    ctx.file("BUILD.bazel", _BUILD.format(defines = ["SINTER_HAVE_NVRTC=0"], linkopts = []))
    print("No CUDA toolkit and no NVRTC wheels were found: CUDA is off in this build. tools/setup can fetch them.")

cuda_headers = repository_rule(
    implementation = _cuda_headers_impl,
    local = True,
    environ = ["CUDA_HOME"],
)
