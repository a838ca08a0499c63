// python_log.h: lines of native code in Python's logging.
#ifndef MSOPS_PYTHON_LOG_H_
#define MSOPS_PYTHON_LOG_H_

#include <string>

namespace msops {

// Returns the lowest level that the Python logger of this name does anything with. Takes the GIL.
int PythonLogLevel(const char* logger);

// Hands a line to the logger, with its source location. Takes the GIL; does nothing once the
// interpreter ends. What a handler raises is reported as unraisable.
void LogToPython(const char* logger, int level, const char* file, int line, const char* function,
                 const std::string& text);

}  // namespace msops

#endif  // MSOPS_PYTHON_LOG_H_
