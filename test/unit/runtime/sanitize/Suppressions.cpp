//===- Suppressions.cpp: what ThreadSanitizer reports though it is none ----===//
// Gives: the list that the sanitizer reads when a program starts. Only tests that run under it are compiled with this.
//
// An exception that a std::promise holds is freed by whoever drops the last of its references. They are counted inside
// of libstdc++.so, which is not compiled with the sanitizer: it sees the reader's read and the last owner's free, not
// the atomic count that orders the two (libstdc++'s manual: "Data Race Hunting").
extern "C" const char *__tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
