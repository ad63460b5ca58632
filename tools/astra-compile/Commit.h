//===- Commit.h: which source this compiler was built from ------------------===//
// Gives:    the commit; "-dirty" behind it where files of it were changed; "" if git did not say (cmake/Commit.cmake).
#pragma once

namespace astra {
extern const char compilerCommit[];
}
