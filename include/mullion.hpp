// mullion.hpp: mullion.h for C++17, with types that keep what comes from a
// domain apart from what has been checked.
//
//     mullion::image image("sum.mx");
//     mullion::imports imports;
//     imports.add<void(const char *)>("log", [](auto message) {
//         std::cout << message.copy_and_verify_string(100, [](std::string text) { return text; });
//     });
//     mullion::domain domain(image, imports);
//
//     auto sum = domain.find<std::uint64_t(const std::uint32_t *, std::uint64_t)>("sum");
//     auto numbers = domain.copy_in(std::vector<std::uint32_t>{1, 2, 3});
//     try {
//         mullion::tainted<std::uint64_t> total = sum(numbers, numbers.size());
//         std::cout << total.copy_and_verify([](auto value) { return std::min<std::uint64_t>(value, 100); });
//     } catch (const mullion::fault &fault) {
//         std::cerr << fault.what() << '\n';
//         domain.restart();
//     }
//
// Everything that a domain returns or passes is a tainted<T>. It converts to
// nothing: copy_and_verify() hands a copy to a function that decides what to
// make of it, unverified() says by its name what it does. A tainted<T *> cannot be
// dereferenced; what lies there is copied, after it was checked to lie in the
// domain.
//
// Errors are exceptions: mullion::error with its status, mullion::fault for
// faults. An exception that a host function throws ends the call into the domain
// and goes on behind it.
#ifndef MULLION_HPP
#define MULLION_HPP

#include "mullion.h"

#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace mullion {

// ---- Errors ----------------------------------------------------------------

// What a function of mullion.h answered if not MULLION_OK.
class error : public std::runtime_error {
public:
    error(mullion_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
    mullion_status status() const noexcept { return status_; }

private:
    mullion_status status_;
};

// A domain faulted, or its time was up. It takes no calls until it is restarted.
class fault : public error {
public:
    explicit fault(const mullion_fault &what)
        : error(MULLION_FAULT, what.message), cause_(what.cause), line_(what.line), address_(what.address),
          domain_(what.domain), symbol_(what.symbol), file_(what.file), backtrace_(what.backtrace) {}
    std::uint32_t cause() const noexcept { return cause_; } // MULLION_CAUSE_...
    std::uint32_t line() const noexcept { return line_; }   // 0: unknown
    std::uint64_t address() const noexcept { return address_; }
    const std::string &domain() const noexcept { return domain_; }
    const std::string &symbol() const noexcept { return symbol_; }
    const std::string &file() const noexcept { return file_; }
    const std::string &backtrace() const noexcept { return backtrace_; }

private:
    std::uint32_t cause_, line_;
    std::uint64_t address_;
    std::string domain_, symbol_, file_, backtrace_;
};

namespace detail {

// The exception that a host function has thrown, on its way around the domain.
inline std::exception_ptr &pending()
{
    thread_local std::exception_ptr exception;
    return exception;
}

[[noreturn]] inline void raise(mullion_status status)
{
    if (status == MULLION_FAULT) {
        mullion_fault what{};
        what.size = sizeof what;
        if (mullion_last_fault(&what) == MULLION_OK)
            throw fault(what);
    }
    throw error(status, mullion_error_message());
}

inline void check(mullion_status status)
{
    // It belongs to this very call, or is over: a link's value has stood in for it.
    const std::exception_ptr thrown = std::exchange(pending(), nullptr);
    if (status == MULLION_OK)
        return;
    if ((status == MULLION_REFUSED || status == MULLION_CALLEE) && thrown)
        std::rethrow_exception(thrown);
    raise(status);
}

// Numbers that can be computed with as they are: wherever a domain's number takes the
// result, it is a number.
template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

// The result of an operation, modulo the type's range: no number of a domain's is undefined
// behaviour of the host.
template <class T, class F>
constexpr T wrapped(T left, T right, F &&operation)
{
    if constexpr (std::is_floating_point_v<T>)
        return operation(left, right);
    else
        return static_cast<T>(operation(static_cast<std::uint64_t>(left), static_cast<std::uint64_t>(right)));
}

template <class T>
inline constexpr bool is_scalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;

// What can be copied: no references, no virtual functions. Pointers in it are the
// domain's, and must be handled as such: declare them as mullion_pointer. Of bool and of
// enumerations without a fixed type not every byte is a value: declare them as integers.
template <class T>
constexpr void check_data()
{
    static_assert(std::is_trivially_copyable_v<T>, "only plain data can be copied across the wall");
    static_assert(!std::is_pointer_v<T>, "a pointer in a domain is a mullion_pointer");
}

template <class T>
mullion_value to_value(T value)
{
    static_assert(is_scalar<T>, "numbers, enumerations and pointers cross the wall in registers");
    if constexpr (std::is_same_v<T, double>)
        return mullion_double(value);
    else if constexpr (std::is_same_v<T, float>)
        return mullion_float(value);
    else if constexpr (std::is_enum_v<T>)
        return to_value(static_cast<std::underlying_type_t<T>>(value));
    else if constexpr (std::is_signed_v<T>)
        return mullion_integer(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
    else
        return mullion_integer(static_cast<std::uint64_t>(value));
}

template <class T>
constexpr std::uint32_t kind_of()
{
    if constexpr (std::is_void_v<T>)
        return MULLION_NOTHING;
    else if constexpr (std::is_same_v<T, double>)
        return MULLION_DOUBLE;
    else if constexpr (std::is_same_v<T, float>)
        return MULLION_FLOAT;
    else
        return MULLION_INTEGER;
}

template <class T>
constexpr mullion_type type_of()
{
    if constexpr (std::is_void_v<T>)
        return MULLION_TYPE_NOTHING;
    else if constexpr (std::is_floating_point_v<T>)
        return MULLION_TYPE_FLOAT - sizeof(float) + sizeof(T);
    else
        return MULLION_TYPE_INTEGER(T);
}

template <class T>
T from_value(const mullion_value &value)
{
    if constexpr (std::is_same_v<T, double>)
        return value.as.real;
    else if constexpr (std::is_same_v<T, float>)
        return value.as.single;
    else if constexpr (std::is_same_v<T, bool>)
        return static_cast<std::uint8_t>(value.as.integer) != 0;
    else if constexpr (std::is_enum_v<T>)
        return static_cast<T>(static_cast<std::underlying_type_t<T>>(value.as.integer));
    else
        return static_cast<T>(value.as.integer);
}

} // namespace detail

// ---- What comes from a domain ------------------------------------------------

// A value that a domain states.
template <class T>
class tainted {
    static_assert(detail::is_scalar<T> || std::is_trivially_copyable_v<T>);

public:
    explicit tainted(T value) : value_(value) {}

    // Whatever `verify` makes of a copy.
    template <class F>
    auto copy_and_verify(F &&verify) const
    {
        return std::forward<F>(verify)(T(value_));
    }
    // The value, whatever it is. Who writes this vouches for what follows.
    T unverified() const { return value_; }
    // A member of a structure, as tainted as the whole. Of an array, see tainted<T *>::field().
    template <class M, class U = T, class = std::enable_if_t<std::is_class_v<U> && !std::is_array_v<M>>>
    tainted<M> field(M U::*member) const
    {
        return tainted<M>(value_.*member);
    }

    // Numbers can be computed with, and compared: what comes of it is tainted, and of the
    // same type; integers wrap. (Division and shifts are undefined for some numbers: not
    // before they have been verified.)
    friend tainted operator+(const tainted &a, const tainted &b) { return a.with(b, [](auto x, auto y) { return x + y; }); }
    friend tainted operator-(const tainted &a, const tainted &b) { return a.with(b, [](auto x, auto y) { return x - y; }); }
    friend tainted operator*(const tainted &a, const tainted &b) { return a.with(b, [](auto x, auto y) { return x * y; }); }
    friend tainted operator&(const tainted &a, const tainted &b) { return a.with(b, [](auto x, auto y) { return x & y; }); }
    friend tainted operator|(const tainted &a, const tainted &b) { return a.with(b, [](auto x, auto y) { return x | y; }); }
    friend tainted operator^(const tainted &a, const tainted &b) { return a.with(b, [](auto x, auto y) { return x ^ y; }); }
    friend tainted operator+(const tainted &a, T b) { return a + tainted(b); }
    friend tainted operator-(const tainted &a, T b) { return a - tainted(b); }
    friend tainted operator*(const tainted &a, T b) { return a * tainted(b); }
    friend tainted operator&(const tainted &a, T b) { return a & tainted(b); }
    friend tainted operator|(const tainted &a, T b) { return a | tainted(b); }
    friend tainted operator^(const tainted &a, T b) { return a ^ tainted(b); }
    tainted operator-() const { return tainted(T(0)) - *this; }
    tainted operator~() const { return *this ^ tainted(static_cast<T>(~T(0))); }
    friend tainted<bool> operator==(const tainted &a, const tainted &b) { return a.compared(b, std::equal_to<T>()); }
    friend tainted<bool> operator!=(const tainted &a, const tainted &b) { return a.compared(b, std::not_equal_to<T>()); }
    friend tainted<bool> operator<(const tainted &a, const tainted &b) { return a.compared(b, std::less<T>()); }
    friend tainted<bool> operator<=(const tainted &a, const tainted &b) { return a.compared(b, std::less_equal<T>()); }
    friend tainted<bool> operator>(const tainted &a, const tainted &b) { return a.compared(b, std::greater<T>()); }
    friend tainted<bool> operator>=(const tainted &a, const tainted &b) { return a.compared(b, std::greater_equal<T>()); }
    friend tainted<bool> operator==(const tainted &a, T b) { return a == tainted(b); }
    friend tainted<bool> operator!=(const tainted &a, T b) { return a != tainted(b); }
    friend tainted<bool> operator<(const tainted &a, T b) { return a < tainted(b); }
    friend tainted<bool> operator<=(const tainted &a, T b) { return a <= tainted(b); }
    friend tainted<bool> operator>(const tainted &a, T b) { return a > tainted(b); }
    friend tainted<bool> operator>=(const tainted &a, T b) { return a >= tainted(b); }

private:
    template <class F>
    tainted with(const tainted &other, F &&operation) const
    {
        static_assert(detail::is_number<T>, "only numbers are computed with");
        return tainted(detail::wrapped(value_, other.value_, std::forward<F>(operation)));
    }
    template <class F>
    tainted<bool> compared(const tainted &other, F &&comparison) const;

    T value_;
};

template <class T>
template <class F>
tainted<bool> tainted<T>::compared(const tainted &other, F &&comparison) const
{
    static_assert(detail::is_scalar<T>, "only numbers and enumerations are compared");
    return tainted<bool>(comparison(value_, other.value_));
}

// An address that a domain states: of a T, they say.
template <class T>
class tainted<T *> {
public:
    using element = std::remove_const_t<T>;

    tainted(mullion_domain domain, mullion_pointer pointer) : domain_(domain), pointer_(pointer) {}
    // A T * of a domain is a const T * as well.
    template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
    tainted(const tainted<U *> &other) : domain_(other.domain()), pointer_(other.unverified()) {}

    std::add_lvalue_reference_t<T> operator*() const = delete;
    T *operator->() const = delete;

    bool is_null() const noexcept { return pointer_.address == 0; }
    // A member of the structure that is said to be there: nothing is read. Of an array, its
    // first element.
    template <class M, class U, class = std::enable_if_t<std::is_same_v<U, element>>>
    auto field(M U::*member) const
    {
        static_assert(std::is_standard_layout_v<U>, "a member's place is known in plain structures only");
        alignas(U) static const unsigned char nowhere[sizeof(U)] = {};
        const U *whole = reinterpret_cast<const U *>(nowhere);
        const auto *part = reinterpret_cast<const unsigned char *>(&(whole->*member));
        const mullion_pointer place{pointer_.address + static_cast<std::uint64_t>(part - nowhere)};
        using kind = std::remove_all_extents_t<M>;
        return tainted<std::conditional_t<std::is_const_v<T>, const kind, kind> *>(domain_, place);
    }
    // `count` elements further, wherever that is.
    tainted operator+(std::uint64_t count) const
    {
        return tainted(domain_, mullion_pointer{pointer_.address + count * sizeof(element)});
    }
    // A copy of the element `index`. Throws if it does not lie in the domain.
    template <class U = element, class = std::enable_if_t<!std::is_void_v<U>>>
    tainted<U> operator[](std::uint64_t index) const
    {
        detail::check_data<U>();
        // A domain may store a 2 where a bool is said to be.
        std::conditional_t<std::is_same_v<U, bool>, unsigned char, U> copy;
        detail::check(mullion_read(domain_, (*this + index).pointer_, &copy, sizeof copy));
        return tainted<U>(static_cast<U>(copy));
    }
    // Whatever `verify` makes of a copy of what is there.
    template <class F>
    auto copy_and_verify(F &&verify) const
    {
        return (*this)[0].copy_and_verify(std::forward<F>(verify));
    }
    // ... of a std::vector of `count` elements. `count` has been checked by whoever
    // calls: a domain must not choose how much memory its host takes.
    template <class F>
    auto copy_and_verify_range(std::size_t count, F &&verify) const
    {
        detail::check_data<element>();
        std::vector<element> copy(count);
        detail::check(mullion_read(domain_, pointer_, copy.data(), count * sizeof(element)));
        return std::forward<F>(verify)(std::move(copy));
    }
    // ... of the std::string that begins there and ends within `longest` bytes.
    template <class F>
    auto copy_and_verify_string(std::size_t longest, F &&verify) const
    {
        static_assert(sizeof(element) == 1, "strings are made of characters");
        std::vector<char> copy(longest + 1);
        std::size_t length = 0;
        detail::check(mullion_read_string(domain_, pointer_, copy.data(), copy.size(), &length));
        return std::forward<F>(verify)(std::string(copy.data(), length));
    }
    // Copies `value` there. Throws if it does not lie in the domain.
    template <class U = element, class = std::enable_if_t<!std::is_void_v<U> && !std::is_const_v<T>>>
    void write(const std::enable_if_t<true, U> &value) const
    {
        detail::check_data<U>();
        detail::check(mullion_write(domain_, pointer_, &value, sizeof value));
    }
    // The address.
    mullion_pointer unverified() const noexcept { return pointer_; }
    mullion_domain domain() const noexcept { return domain_; }

private:
    mullion_domain domain_;
    mullion_pointer pointer_;
};

namespace detail {

template <class T>
struct argument;

} // namespace detail

// A function's address that a domain states. It can be called: that it is one of the
// domain's functions is checked then (MULLION_NOT_A_FUNCTION), its type is not.
template <class R, class... A>
class tainted<R (*)(A...)> {
public:
    tainted(mullion_domain domain, mullion_pointer pointer) : domain_(domain), pointer_(pointer) {}
    bool is_null() const noexcept { return pointer_.address == 0; }
    auto operator()(detail::argument<A>... arguments) const;
    mullion_pointer unverified() const noexcept { return pointer_; }
    mullion_domain domain() const noexcept { return domain_; }

private:
    mullion_domain domain_;
    mullion_pointer pointer_;
};

namespace detail {

template <class T>
auto taint(mullion_domain domain, const mullion_value &value)
{
    if constexpr (std::is_pointer_v<T>)
        return tainted<T>(domain, mullion_as_pointer(value));
    else
        return tainted<T>(from_value<T>(value));
}

} // namespace detail

// ---- Images ----------------------------------------------------------------------

// A verified image.
class image {
public:
    explicit image(const std::string &path) { detail::check(mullion_image_open(path.c_str(), &handle_)); }
    image(const std::string &name, const void *bytes, std::size_t length)
    {
        detail::check(mullion_image_from_memory(name.c_str(), bytes, length, &handle_));
    }
    image(image &&other) noexcept : handle_(std::exchange(other.handle_, mullion_image{0})) {}
    image &operator=(image &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~image() { mullion_image_free(handle_); }
    // As mullion_image_prepare().
    void prepare(std::size_t domains) { detail::check(mullion_image_prepare(handle_, domains)); }
    mullion_image handle() const noexcept { return handle_; }

private:
    mullion_image handle_{0};
};

// ---- Memory in domains, owned by the host ------------------------------------------

// `size()` elements in a domain, which it may change at any time. After a restart of the
// domain they are not there any more: to copy them is an error (MULLION_BAD_ADDRESS), to
// let go of them is none.
template <class T>
class buffer {
public:
    buffer(buffer &&other) noexcept
        : domain_(other.domain_), pointer_(std::exchange(other.pointer_, mullion_pointer{0})),
          restarts_(other.restarts_), size_(other.size_) {}
    buffer &operator=(buffer &&) = delete;
    // Not what the fresh domain has been given there since.
    ~buffer() { mullion_free_since(domain_, pointer_, restarts_); }

    std::size_t size() const noexcept { return size_; }
    // A copy of the elements: tainted, as the domain may have written them.
    template <class F>
    auto copy_and_verify(F &&verify) const
    {
        std::uint64_t restarts = 0;
        detail::check(mullion_domain_restarts(domain_, &restarts));
        if (restarts != restarts_)
            throw error(MULLION_BAD_ADDRESS, "the buffer is from before a restart of its domain");
        return ptr().copy_and_verify_range(size_, std::forward<F>(verify));
    }
    // Where it is. A number, like every address: after a restart something else is there.
    tainted<T *> ptr() const { return tainted<T *>(domain_, pointer_); }

private:
    friend class domain;
    // Copies `data` in; null: zeroes.
    buffer(mullion_domain domain, const T *data, std::size_t size) : domain_(domain), pointer_{0}, restarts_(0), size_(size)
    {
        detail::check_data<T>();
        if (size > SIZE_MAX / sizeof(T))
            throw error(MULLION_NO_MEMORY, "more elements than there is memory");
        // Asked first: if another thread restarts the domain meanwhile, it is from before.
        detail::check(mullion_domain_restarts(domain, &restarts_));
        detail::check(data ? mullion_copy_in(domain, data, size * sizeof(T), &pointer_)
                           : mullion_alloc(domain, size * sizeof(T), &pointer_));
    }

    mullion_domain domain_;
    mullion_pointer pointer_;
    std::uint64_t restarts_;
    std::size_t size_;
};

namespace detail {

// What can be passed where a function takes a T.
template <class T>
struct argument {
    argument(T value) : value_(to_value(value)) {}
    argument(const tainted<T> &value) : argument(value.unverified()) {}
    mullion_value value_;
};

template <class T>
struct argument<T *> {
    argument(std::nullptr_t) : value_(mullion_integer(0)) {}
    argument(const tainted<T *> &pointer) : value_(mullion_address(pointer.unverified())) {}
    argument(const buffer<std::remove_const_t<T>> &memory) : argument(memory.ptr()) {}
    // void * takes a pointer to anything.
    template <class U, class = std::enable_if_t<std::is_void_v<T> && !std::is_void_v<U>>>
    argument(const tainted<U *> &pointer) : value_(mullion_address(pointer.unverified())) {}
    mullion_value value_;
};

} // namespace detail

template <class R, class... A>
auto tainted<R (*)(A...)>::operator()(detail::argument<A>... arguments) const
{
    const mullion_value values[sizeof...(A) + 1] = {arguments.value_..., mullion_integer(0)};
    mullion_value result{detail::kind_of<R>(), 0, {0}};
    detail::check(mullion_call_pointer(domain_, pointer_, values, sizeof...(A), &result));
    if constexpr (!std::is_void_v<R>)
        return detail::taint<R>(domain_, result);
}

// ---- Calls that go on by themselves ------------------------------------------------------

// A call on a thread of its own, from function::start(). Destroyed, it is cancelled. An exception
// that a host function throws ends it with MULLION_REFUSED.
template <class R>
class call {
public:
    call(mullion_domain domain, mullion_call_handle handle) : domain_(domain), handle_(handle) {}
    call(call &&other) noexcept : domain_(other.domain_), handle_(std::exchange(other.handle_, {0})) {}
    call &operator=(call &&other) noexcept
    {
        std::swap(domain_, other.domain_);
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~call() { mullion_call_close(handle_); }

    // Waits, at most so many nanoseconds: MULLION_TIMED_OUT if it goes on. The result is given once.
    auto wait(std::uint64_t nanoseconds = MULLION_NEVER) const
    {
        mullion_value result{detail::kind_of<R>(), 0, {0}};
        detail::check(mullion_call_wait(handle_, nanoseconds, &result));
        if constexpr (!std::is_void_v<R>)
            return detail::taint<R>(domain_, result);
    }
    // From any thread.
    void cancel() const { detail::check(mullion_call_cancel(handle_)); }

private:
    mullion_domain domain_;
    mullion_call_handle handle_;
};

// ---- Functions of domains --------------------------------------------------------------

template <class Signature>
class function;

// A function that a domain exports. Its type is what the host says; if the image has debug
// information that says something else, that is an error (MULLION_WRONG_TYPE).
template <class R, class... A>
class function<R(A...)> {
public:
    function(mullion_domain domain, const std::string &name) : domain_(domain), handle_(place())
    {
        detail::check(mullion_function_find(domain, name.c_str(), handle_.get()));
        constexpr mullion_type parameters[sizeof...(A) + 1] = {detail::type_of<A>()..., 0};
        detail::check(mullion_function_check(*handle_, detail::type_of<R>(), parameters, sizeof...(A)));
    }
    // Of whatever domain serves when it is called: see live.
    function(mullion_live live, const std::string &name) : domain_{0}, handle_(place())
    {
        static_assert(!std::is_pointer_v<R> && !(false || ... || std::is_pointer_v<A>),
                      "a pointer is one domain's: see live::now()");
        constexpr mullion_type parameters[sizeof...(A) + 1] = {detail::type_of<A>()..., 0};
        detail::check(mullion_live_function(live, name.c_str(), detail::type_of<R>(), parameters, sizeof...(A),
                                            handle_.get()));
    }

    // The same function, whose every call has these limits beside those of its domain.
    function limited(const mullion_call_limits &limits) const
    {
        function copy = *this;
        copy.limits_ = limits;
        copy.limits_.size = sizeof limits;
        return copy;
    }
    mullion_function handle() const noexcept { return *handle_; }

    // Calls it. What it returns is tainted, unless that is nothing.
    auto operator()(detail::argument<A>... arguments) const
    {
        const mullion_value values[sizeof...(A) + 1] = {arguments.value_..., mullion_integer(0)};
        mullion_value result{detail::kind_of<R>(), 0, {0}};
        detail::check(mullion_call_limited(*handle_, values, sizeof...(A), &limits_, &result));
        if constexpr (!std::is_void_v<R>)
            return detail::taint<R>(domain_, result);
    }

    // Calls it on a thread of its own, and does not wait.
    call<R> start(detail::argument<A>... arguments) const
    {
        const mullion_value values[sizeof...(A) + 1] = {arguments.value_..., mullion_integer(0)};
        mullion_call_handle handle{0};
        detail::check(mullion_call_start(*handle_, values, sizeof...(A), &limits_, &handle));
        return {domain_, handle};
    }

private:
    friend class imports;
    friend class domain;
    static std::shared_ptr<mullion_function> place()
    {
        return {new mullion_function{0}, [](mullion_function *handle) {
                    mullion_function_free(*handle);
                    delete handle;
                }};
    }
    // For another domain to call.
    mullion_link_options options(const mullion_value *failed) const
    {
        constexpr unsigned reals = (0u + ... + unsigned(std::is_floating_point_v<A>));
        return {sizeof(mullion_link_options), reals, unsigned(sizeof...(A)) - reals, &limits_, failed};
    }

    mullion_domain domain_;
    std::shared_ptr<mullion_function> handle_;
    mullion_call_limits limits_ = MULLION_CALL_LIMITS_DEFAULT;
};

// ---- Functions of the host ------------------------------------------------------------

// The domain that has called a host function, for the time of that call, on its thread.
class caller {
public:
    explicit caller(mullion_domain domain) : domain_(domain) {}
    mullion_domain handle() const noexcept { return domain_; }
    // The domain that has called this one, by a link; 0: the host has.
    mullion_domain called_by() const
    {
        mullion_domain by{0};
        detail::check(mullion_called_by(domain_, &by));
        return by;
    }
    // Keeps `resource` (a std::unique_lock, a std::ofstream) with the call that runs: it is
    // destroyed when that ends, by a return, a fault or an exception, the last one first, on
    // this thread; or before, by release(). The number is for release(): the domain may have it.
    template <class T>
    std::uint64_t hold(T resource) const
    {
        static_assert(std::is_nothrow_destructible_v<T>, "the end of a call cannot fail");
        auto kept = std::make_unique<T>(std::move(resource));
        std::uint64_t number = 0;
        detail::check(mullion_hold(domain_, [](void *held) { delete static_cast<T *>(held); }, kept.get(), &number));
        kept.release();
        return number;
    }
    // Destroys what this call, or one that it is nested in, holds by that number; whether
    // there is such a thing. Another domain's is not touched, whatever number a domain says.
    bool release(std::uint64_t number) const
    {
        const mullion_status status = mullion_release(domain_, number);
        if (status != MULLION_BAD_HANDLE)
            detail::check(status);
        return status == MULLION_OK;
    }
    bool release(const tainted<std::uint64_t> &number) const { return release(number.unverified()); }
    // Counts what the domain is about to hand out by this function as its output. More than
    // its limit ends the call, as a fault of its own.
    void charge_output(std::uint64_t bytes) const { detail::check(mullion_charge_output(domain_, bytes)); }

private:
    mullion_domain domain_;
};

// The functions that a host offers to a domain, by name.
class imports {
public:
    imports() : list_(std::make_shared<list>()) {}

    // Offers `function`, which is called with a tainted<A> for each A, and a caller in front
    // if it takes one, and returns an R. It may be called from every thread that is in the
    // domain. It is destroyed when nothing can call it any more: after the domains that were
    // loaded with it, and the calls that were in them.
    template <class Signature, class F>
    imports &add(const std::string &name, F &&function)
    {
        using kind = callable<Signature>;
        auto made = std::make_unique<kind>(std::forward<F>(function));
        const auto gone = [](void *user) { delete static_cast<kind *>(user); };
        detail::check(mullion_imports_add_owned(list_->handle, name.c_str(), kind::call, made.get(), gone));
        made.release();
        return *this;
    }
    // Offers a function of another domain as `name`: the domain calls it with the host out
    // of the way. If it faults or takes no calls, that ends the call into the calling
    // domain (MULLION_CALLEE), or the calling one finds `failed`.
    template <class R, class... A>
    imports &link(const std::string &name, const function<R(A...)> &callee)
    {
        const auto options = callee.options(nullptr);
        detail::check(mullion_imports_link(list_->handle, name.c_str(), callee.handle(), &options));
        return *this;
    }
    template <class R, class... A>
    imports &link(const std::string &name, const function<R(A...)> &callee, R failed)
    {
        const mullion_value value = detail::to_value<R>(failed);
        const auto options = callee.options(&value);
        detail::check(mullion_imports_link(list_->handle, name.c_str(), callee.handle(), &options));
        return *this;
    }
    // Offers as `name` what domain::link() will say.
    imports &link_later(const std::string &name)
    {
        detail::check(mullion_imports_link_later(list_->handle, name.c_str()));
        return *this;
    }
    mullion_imports handle() const noexcept { return list_->handle; }

private:
    struct list {
        mullion_imports handle{0};
        list() { detail::check(mullion_imports_new(&handle)); }
        ~list() { mullion_imports_free(handle); }
        list(const list &) = delete;
        list &operator=(const list &) = delete;
    };

    template <class Signature>
    struct callable;
    template <class R, class... A>
    struct callable<R(A...)> {
        template <class T>
        using taken = decltype(detail::taint<T>(mullion_domain{}, mullion_value{}));
        std::function<R(caller, taken<A>...)> function;

        template <class F>
        explicit callable(F &&given)
        {
            static_assert(sizeof...(A) <= 8, "a host function has at most eight arguments");
            if constexpr (std::is_invocable_v<std::decay_t<F> &, taken<A>...>)
                function = [inner = std::decay_t<F>(std::forward<F>(given))](caller, taken<A>... arguments) mutable -> R {
                    if constexpr (std::is_void_v<R>)
                        inner(std::move(arguments)...);
                    else
                        return inner(std::move(arguments)...);
                };
            else
                function = std::forward<F>(given);
        }

        static mullion_status call([[maybe_unused]] mullion_domain domain, void *user,
                                   [[maybe_unused]] const mullion_arguments *arguments,
                                   [[maybe_unused]] mullion_value *result)
        {
            try {
                [[maybe_unused]] unsigned integers = 0, reals = 0;
                // In braces, so that they are taken in order.
                std::tuple<caller, taken<A>...> all{
                    caller(domain), detail::taint<A>(domain, next<A>(domain, *arguments, integers, reals))...};
                const auto &function = static_cast<callable *>(user)->function;
                if constexpr (std::is_void_v<R>)
                    std::apply(function, all);
                else if constexpr (std::is_pointer_v<R>)
                    static_assert(!std::is_pointer_v<R>, "return a mullion_pointer's address as std::uint64_t");
                else
                    *result = detail::to_value<R>(std::apply(function, all));
                return MULLION_OK;
            } catch (const error &refused) {
                // The domain's own fault.
                if (refused.status() == MULLION_OUTPUT_LIMIT)
                    return MULLION_OUTPUT_LIMIT;
                detail::pending() = std::current_exception();
                return MULLION_REFUSED;
            } catch (...) {
                // It must not pass through the domain; detail::check() takes it up behind.
                detail::pending() = std::current_exception();
                return MULLION_REFUSED;
            }
        }

        template <class T>
        static mullion_value next([[maybe_unused]] mullion_domain domain, const mullion_arguments &arguments,
                                  unsigned &integers, unsigned &reals)
        {
            mullion_value value{detail::kind_of<T>(), 0, {0}};
            if constexpr (std::is_floating_point_v<T>) {
                std::memcpy(&value.as, &arguments.reals[reals++], sizeof value.as);
            } else if (integers < 6) {
                value.as.integer = arguments.integers[integers++];
            } else {
                detail::check(mullion_argument(domain, integers++, &value.as.integer));
            }
            return value;
        }
    };

    std::shared_ptr<list> list_;
};

// ---- Domains ----------------------------------------------------------------------------

// What a domain may use: mullion_limits with its defaults.
struct limits : mullion_limits {
    limits() : mullion_limits MULLION_LIMITS_DEFAULT {}
};

// An image in a window of its own. Unloaded when it goes; if calls of the host are in it
// then, it stays.
class domain {
public:
    explicit domain(const image &image, const imports &functions = imports(), const limits &limits = {},
                    const char *name = nullptr)
    {
        detail::check(mullion_domain_load(image.handle(), name, functions.handle(), &limits, &handle_));
    }
    domain(domain &&other) noexcept : handle_(std::exchange(other.handle_, mullion_domain{0})) {}
    domain &operator=(domain &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~domain() { mullion_domain_unload(handle_); }

    mullion_domain handle() const noexcept { return handle_; }
    // The state that it had when it was loaded. Functions stay good.
    void restart() { detail::check(mullion_domain_restart(handle_)); }
    // As restart(), when nobody is in it any more, and so many nanoseconds at most.
    void restart_when_idle(std::uint64_t nanoseconds)
    {
        detail::check(mullion_domain_restart_when_idle(handle_, nanoseconds));
    }
    void unload()
    {
        detail::check(mullion_domain_unload(handle_));
        handle_ = mullion_domain{0};
    }
    bool has_ended() const
    {
        int ended = 0;
        detail::check(mullion_domain_has_ended(handle_, &ended));
        return ended != 0;
    }

    // Puts a function of another domain behind an import that imports::link_later() has
    // named. `asker` is the domain on whose behalf that is done; the host otherwise.
    template <class R, class... A>
    void link(const std::string &import, const function<R(A...)> &callee, mullion_domain asker = mullion_host())
    {
        const auto options = callee.options(nullptr);
        detail::check(mullion_link(asker, handle_, import.c_str(), callee.handle(), &options));
    }

    // find<double(int, const char *)>("name")
    template <class Signature>
    function<Signature> find(const std::string &name) const
    {
        return function<Signature>(handle_, name);
    }

    // `count` elements, zeroed.
    template <class T>
    buffer<T> alloc(std::size_t count) const
    {
        return buffer<T>(handle_, nullptr, count);
    }
    template <class T>
    buffer<T> copy_in(const T *data, std::size_t count) const
    {
        return buffer<T>(handle_, data, count);
    }
    template <class T>
    buffer<T> copy_in(const std::vector<T> &data) const
    {
        return copy_in(data.data(), data.size());
    }
    // With its terminating zero.
    buffer<char> copy_in(const std::string &text) const { return copy_in(text.c_str(), text.size() + 1); }

protected:
    friend class live;
    explicit domain(mullion_domain handle) : handle_(handle) {}
    mullion_domain handle_{0};
};

// ---- Domains kept ready, and replaced --------------------------------------------------------

// A domain that is taken out of a pool, and goes back when this goes. Functions of it are to
// go before.
class pooled : public domain {
public:
    pooled(pooled &&) = default;
    pooled &operator=(pooled &&) = default;
    ~pooled() { mullion_pool_put(std::exchange(handle_, mullion_domain{0})); }

private:
    friend class pool;
    explicit pooled(mullion_domain handle) : domain(handle) {}
};

// Domains for one use each, restarted behind: see mullion_pool_new().
class pool {
public:
    explicit pool(const image &image, const imports &functions = imports(), const limits &limits = {},
                  std::uint64_t most = 0, std::uint64_t ready = 0, const char *name = nullptr)
    {
        const mullion_pool_limits bounds{sizeof bounds, most, ready, 0};
        detail::check(mullion_pool_new(image.handle(), name, functions.handle(), &limits, &bounds, &handle_));
    }
    pool(pool &&other) noexcept : handle_(std::exchange(other.handle_, mullion_pool{0})) {}
    pool &operator=(pool &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~pool() { mullion_pool_free(handle_); }

    // One that is as new; waits for it at most so many nanoseconds (MULLION_TIMED_OUT).
    pooled get(std::uint64_t nanoseconds = MULLION_NEVER) const
    {
        mullion_domain taken{0};
        detail::check(mullion_pool_get(handle_, nanoseconds, &taken));
        return pooled(taken);
    }
    // From now on domains are made of this image.
    void upgrade(const image &image, const imports &functions = imports(), const limits &limits = {},
                 const char *name = nullptr) const
    {
        detail::check(mullion_pool_upgrade(handle_, image.handle(), name, functions.handle(), &limits));
    }
    mullion_pool_figures stats() const
    {
        mullion_pool_figures figures = MULLION_POOL_FIGURES_DEFAULT;
        detail::check(mullion_pool_stats(handle_, &figures));
        return figures;
    }
    mullion_pool handle() const noexcept { return handle_; }

private:
    mullion_pool handle_{0};
};

// A place for a domain that can be replaced by one of another image, behind the same functions.
class live {
public:
    explicit live(domain &&first)
    {
        detail::check(mullion_live_new(first.handle(), &handle_));
        first.handle_ = mullion_domain{0};
    }
    live(live &&other) noexcept : handle_(std::exchange(other.handle_, mullion_live{0})) {}
    live &operator=(live &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~live() { mullion_live_free(handle_); }

    // The function of whatever domain serves when it is called: numbers in, a number out. Every
    // later domain must have it.
    template <class Signature>
    function<Signature> find(const std::string &name) const
    {
        return function<Signature>(handle_, name);
    }
    // The function of the domain that serves now: for pointers, which are one domain's.
    template <class Signature>
    function<Signature> now(const std::string &name) const
    {
        mullion_domain serving{0};
        detail::check(mullion_live_domain(handle_, &serving));
        return function<Signature>(serving, name);
    }
    // Puts another domain in the place; if that fails, `next` is as it was.
    void upgrade(domain &&next) const
    {
        detail::check(mullion_live_upgrade(handle_, next.handle()));
        next.handle_ = mullion_domain{0};
    }
    mullion_live handle() const noexcept { return handle_; }

private:
    mullion_live handle_{0};
};

// ---- Memory that domains share -------------------------------------------------------------

// Pages of the host that domains are given, each with a protection of its own.
class shared {
public:
    shared(const std::string &name, std::uint64_t length)
    {
        detail::check(mullion_shared_new(name.c_str(), length, &handle_));
        detail::check(mullion_shared_bytes(handle_, &bytes_, &length_));
    }
    shared(shared &&other) noexcept
        : handle_(std::exchange(other.handle_, mullion_shared{0})), bytes_(other.bytes_), length_(other.length_) {}
    shared &operator=(shared &&) = delete;
    ~shared() { mullion_shared_free(handle_); }

    // All of it, or these bytes: MULLION_NONE, MULLION_READ or MULLION_READ_WRITE.
    void grant(const domain &to, std::uint32_t permission, mullion_domain asker = mullion_host()) const
    {
        grant(to, permission, 0, length_, asker);
    }
    void grant(const domain &to, std::uint32_t permission, std::uint64_t offset, std::uint64_t length,
               mullion_domain asker = mullion_host()) const
    {
        detail::check(mullion_grant(handle_, asker, to.handle(), offset, length, permission));
    }
    // Where a domain has it.
    template <class T>
    tainted<T *> ptr(const domain &in, std::uint64_t offset = 0) const
    {
        mullion_pointer pointer{0};
        detail::check(mullion_shared_pointer(handle_, in.handle(), offset, &pointer));
        return tainted<T *>(in.handle(), pointer);
    }
    // Where the host has it. Domains that may write change it at any time.
    volatile void *bytes() const noexcept { return bytes_; }
    std::uint64_t size() const noexcept { return length_; }
    mullion_shared handle() const noexcept { return handle_; }

private:
    mullion_shared handle_{0};
    void *bytes_ = nullptr;
    std::uint64_t length_ = 0;
};

} // namespace mullion

#endif
