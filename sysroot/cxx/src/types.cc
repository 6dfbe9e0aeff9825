// Run-time type information (Itanium C++ ABI, 2.9.5): the classes whose tables
// the compiler refers to, and dynamic_cast.
#include <cstddef>
#include <cstring>
#include <typeinfo>

namespace __cxxabiv1 {

class __fundamental_type_info : public std::type_info {
public:
	~__fundamental_type_info() override;
};

class __array_type_info : public std::type_info {
public:
	~__array_type_info() override;
};

class __function_type_info : public std::type_info {
public:
	~__function_type_info() override;
	bool __is_function_p() const override { return true; }
};

class __enum_type_info : public std::type_info {
public:
	~__enum_type_info() override;
};

class __pbase_type_info : public std::type_info {
public:
	~__pbase_type_info() override;
	bool __do_catch(const std::type_info *thrown, void **object, unsigned outer) const override;
	unsigned int flags;
	const std::type_info *pointee;
};

class __pointer_type_info : public __pbase_type_info {
public:
	~__pointer_type_info() override;
	bool __is_pointer_p() const override { return true; }
};

class __class_type_info : public std::type_info {
public:
	~__class_type_info() override;
	bool __do_catch(const std::type_info *thrown, void **object, unsigned outer) const override;
	bool __do_upcast(const __class_type_info *wanted, void **object) const override;
};

class __pointer_to_member_type_info : public __pbase_type_info {
public:
	~__pointer_to_member_type_info() override;
	const __class_type_info *context;
};

// One public, non-virtual base at offset zero.
class __si_class_type_info : public __class_type_info {
public:
	~__si_class_type_info() override;
	const __class_type_info *base;
};

struct Base {
	const __class_type_info *type;
	long offset_and_flags;
	bool is_virtual() const { return offset_and_flags & 1; }
	bool is_public() const { return offset_and_flags & 2; }
	long offset() const { return offset_and_flags >> 8; }
};

// Any other bases.
class __vmi_class_type_info : public __class_type_info {
public:
	~__vmi_class_type_info() override;
	unsigned int flags;
	unsigned int count;
	Base bases[1];
};

__fundamental_type_info::~__fundamental_type_info() = default;
__array_type_info::~__array_type_info() = default;
__function_type_info::~__function_type_info() = default;
__enum_type_info::~__enum_type_info() = default;
__pbase_type_info::~__pbase_type_info() = default;
__pointer_type_info::~__pointer_type_info() = default;
__class_type_info::~__class_type_info() = default;
__pointer_to_member_type_info::~__pointer_to_member_type_info() = default;
__si_class_type_info::~__si_class_type_info() = default;
__vmi_class_type_info::~__vmi_class_type_info() = default;

} // namespace __cxxabiv1

namespace std {

type_info::~type_info() = default;
bool type_info::__is_pointer_p() const { return false; }
bool type_info::__is_function_p() const { return false; }
bool type_info::__do_catch(const type_info *thrown, void **, unsigned) const { return *this == *thrown; }
bool type_info::__do_upcast(const __cxxabiv1::__class_type_info *, void **) const { return false; }

} // namespace std

namespace __cxxabiv1 {

namespace {

typedef const char *Address;

// Calls `visit(type, address, is_public)` for an object and each of its base
// subobjects, along every path.
template <typename Visit>
void walk(const __class_type_info *type, Address object, bool is_public, Visit &visit)
{
	visit(type, object, is_public);
	if (typeid(*type) == typeid(__si_class_type_info)) {
		walk(static_cast<const __si_class_type_info *>(type)->base, object, is_public, visit);
	} else if (typeid(*type) == typeid(__vmi_class_type_info)) {
		const __vmi_class_type_info *several = static_cast<const __vmi_class_type_info *>(type);
		for (unsigned int i = 0; i < several->count; i++) {
			const Base &base = several->bases[i];
			long offset = base.offset();
			// A null pointer has no table; all of its bases are null.
			if (!object)
				offset = 0;
			else if (base.is_virtual())
				offset = *reinterpret_cast<const long *>(*reinterpret_cast<const Address *>(object) + offset);
			walk(base.type, object + offset, is_public && base.is_public(), visit);
		}
	}
}

// Whether the object has, on a public path, that subobject.
bool has(const __class_type_info *type, Address object, const __class_type_info *wanted, Address place)
{
	bool found = false;
	auto visit = [&](const __class_type_info *seen, Address address, bool is_public) {
		found = found || (is_public && address == place && *seen == *wanted);
	};
	walk(type, object, true, visit);
	return found;
}

} // namespace

// [except.handle]: a handler takes its own class, and those that it is the one
// public base of; `*object` becomes that base. `outer`: 2 for each pointer
// around, 1 while all of them so far point to const.
bool __class_type_info::__do_catch(const std::type_info *thrown, void **object, unsigned outer) const
{
	return *this == *thrown || (outer < 4 && thrown->__do_upcast(this, object));
}

bool __class_type_info::__do_upcast(const __class_type_info *wanted, void **object) const
{
	Address found = nullptr;
	bool any = false, several = false;
	auto visit = [&](const __class_type_info *seen, Address address, bool is_public) {
		if (*seen != *wanted)
			return;
		several = several || (any && (found != address || !is_public));
		any = any || is_public;
		found = address;
	};
	walk(this, static_cast<Address>(*object), true, visit);
	if (!any || several)
		return false;
	if (*object)
		*object = const_cast<char *>(found);
	return true;
}

enum { CONST = 1, QUALIFIERS = 7 };

// ... a pointer takes those that convert to it: more qualifiers, void, a base, null.
bool __pbase_type_info::__do_catch(const std::type_info *thrown, void **object, unsigned outer) const
{
	if (*this == *thrown)
		return true;
	if (*thrown == typeid(nullptr)) {
		*object = nullptr;
		return __is_pointer_p();
	}
	if (typeid(*this) != typeid(*thrown) || !(outer & 1))
		return false;
	const __pbase_type_info *from = static_cast<const __pbase_type_info *>(thrown);
	if (from->flags & ~flags & QUALIFIERS)
		return false;
	if (!(flags & CONST))
		outer &= ~1u;
	if (__is_pointer_p() && outer < 2 && *pointee == typeid(void))
		return !from->pointee->__is_function_p();
	if (!__is_pointer_p() && *static_cast<const __pointer_to_member_type_info *>(this)->context != *static_cast<const __pointer_to_member_type_info *>(from)->context)
		return false;
	return pointee->__do_catch(from->pointee, object, outer + 2);
}

// [expr.dynamic.cast]: first the one object of the wanted class that has the
// source as a public base; else the one public base of that class of the whole
// object, if the source is a public base of the whole.
extern "C" void *__dynamic_cast(const void *source, const __class_type_info *from, const __class_type_info *to, std::ptrdiff_t)
{
	const void *const *table = *static_cast<const void *const *const *>(source);
	Address whole = static_cast<Address>(source) + reinterpret_cast<std::ptrdiff_t>(table[-2]);
	const __class_type_info *type = static_cast<const __class_type_info *>(table[-1]);
	Address down = nullptr, across = nullptr;
	bool down_twice = false, across_twice = false;
	auto visit = [&](const __class_type_info *seen, Address address, bool is_public) {
		if (*seen != *to)
			return;
		if (has(seen, address, from, static_cast<Address>(source))) {
			down_twice = down_twice || (down && down != address);
			down = address;
		}
		across_twice = across_twice || (across && across != address);
		if (is_public)
			across = address;
	};
	walk(type, whole, true, visit);
	Address found = nullptr;
	if (down && !down_twice)
		found = down;
	else if (!down && across && !across_twice && has(type, whole, from, static_cast<Address>(source)))
		found = across;
	return const_cast<char *>(found);
}

} // namespace __cxxabiv1
