//===- WindowAttributes.cpp: the attributes of convolutions and pools ------===//
#include "WindowAttributes.h"

namespace astra::onnx {

using compose::AutoPad;

static std::optional<Ints> given(Node &n, llvm::StringRef name) {
  return n.hasAttr(name) ? std::optional(n.intsAttr(name)) : std::nullopt;
}

compose::WindowOptions plainWindowAttributes(Node &n) {
  return {{}, given(n, "strides"), given(n, "dilations"), given(n, "pads"), AutoPad::Given};
}

compose::WindowOptions windowAttributes(Node &n) {
  constexpr std::pair<const char *, AutoPad> names[] = {{"NOTSET", AutoPad::Given},
                                                        {"VALID", AutoPad::Valid},
                                                        {"SAME_UPPER", AutoPad::SameUpper},
                                                        {"SAME_LOWER", AutoPad::SameLower}};
  compose::WindowOptions options = plainWindowAttributes(n);
  options.kernel = given(n, "kernel_shape");
  std::string automatic = n.stringAttr("auto_pad", "NOTSET");
  for (auto [name, pads] : names) {
    if (automatic != name) continue;
    options.automatic = pads;
    return options;
  }
  n.fail("attribute 'auto_pad' is '" + automatic + "', which is not one of ONNX's");
  return options;
}

compose::ConvolutionOptions convolutionAttributes(Node &n) { return {windowAttributes(n), n.intAttr("group", 1)}; }

} // namespace astra::onnx
