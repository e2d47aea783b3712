"""The rules that every BUILD file of Sinter uses."""

def sinter_library(name, hdrs = [], visibility = ["//visibility:public"], **kwargs):
    """A library whose headers are included as "sinter/<package>/<file>.h"."""
    native.cc_library(
        name = name,
        hdrs = hdrs,
        include_prefix = ("sinter/" + native.package_name()).rstrip("/"),
        strip_include_prefix = "/" + native.package_name() if hdrs and native.package_name() else None,
        visibility = visibility,
        **kwargs
    )

def sinter_test(name, deps = [], size = "small", timeout = "moderate", **kwargs):
    """A GoogleTest."""
    native.cc_test(
        name = name,
        size = size,
        timeout = timeout,
        deps = deps + ["@gtest//:lib"],
        **kwargs
    )

def sinter_binary(name, visibility = ["//visibility:public"], **kwargs):
    native.cc_binary(name = name, visibility = visibility, **kwargs)
