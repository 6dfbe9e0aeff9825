/* Character classes as bits of our own: musl shows no table of them. */
namespace std _GLIBCXX_VISIBILITY(default)
{
_GLIBCXX_BEGIN_NAMESPACE_VERSION

struct ctype_base {
	typedef const int *__to_type;
	typedef unsigned short mask;
	static const mask upper = 1 << 0;
	static const mask lower = 1 << 1;
	static const mask alpha = 1 << 2;
	static const mask digit = 1 << 3;
	static const mask xdigit = 1 << 4;
	static const mask space = 1 << 5;
	static const mask print = 1 << 6;
	static const mask cntrl = 1 << 7;
	static const mask punct = 1 << 8;
	static const mask graph = (1 << 2) | (1 << 3) | (1 << 8);
	static const mask alnum = (1 << 2) | (1 << 3);
#if __cplusplus >= 201103L
	static const mask blank = 1 << 9;
#endif
};

_GLIBCXX_END_NAMESPACE_VERSION
} // namespace
