// The members of std::string that the headers declare to be compiled elsewhere.
#include <string>

namespace std {

template class basic_string<char>;
template class basic_string<wchar_t>;

} // namespace std
