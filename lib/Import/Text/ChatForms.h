//===- ChatForms.h: which form of conversations a template is --------------===//
// Takes:    the text of a chat template (Jinja), or a form's name.
// Gives:    the strings that libastra_text puts around contents.
// Keeps:    templates are recognised, never run.
// Does not: support tools, images, or documents in conversations.
#pragma once

#include "Draft.h"

namespace astra::import::text {

/// Sets `chat` and the role of the token that ends a turn. `form`: a name of ChatForms.def, "none", or empty: recognise
/// `chatTemplate`; if that is empty too, there is no form.
llvm::Error setChat(Draft &draft, llvm::StringRef chatTemplate, llvm::StringRef form, llvm::StringRef bos,
                    llvm::StringRef eos);

} // namespace astra::import::text
