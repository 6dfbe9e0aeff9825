// mullion_graft.hpp: replaces one virtual function of one object by an extension,
// and takes it back (MiSFIT, section 5.1).
//
//     struct policy {
//         virtual ~policy();                    // slots 0 and 1
//         virtual int victim(int pages);        // slot 2
//     };
//     auto victim = domain.find<int(int)>("victim");
//     mullion::graft<&policy::victim, 3> graft(object, victim, [](int page) { return page & 63; });
//
// From here on object.victim(n) asks the extension, and the last argument makes a
// checked value of its answer; other objects of the class are untouched. When the
// extension faults, runs into a limit, or cannot be called, the original function
// answers. When the graft goes, the object is as it was. victim.limited(limits) in the
// place of victim gives this graft limits of its own, on time above all.
//
//   object:  | vptr |---.       the class's table        the graft's copy of it
//            | ...  |   |                               | the graft     |
//                       |      | offset to top |        | offset to top |
//                       |      | type          |        | type          |
//                       |  x-> | slot 0        |   .--> | slot 0        |
//                       '-----------------------'       | slot 1        |
//                              | ...           |        | thunk         |  in the place of slot 2
//
// WHAT MUST HOLD
// - `Slots` is the number of virtual functions in the table of the object's own
//   class, those it inherits included; destructors count two. A call of one that
//   was left out ends the program with a message.
// - The class has no virtual bases. The tables are those of the Itanium C++ ABI,
//   which every compiler on Linux has.
// - The object outlives the graft, and no thread calls the function while the graft
//   is taken back.
// - The compiler does not know the object's class where it is called, or it calls
//   the original directly: call through a pointer or reference that came from elsewhere.
#ifndef MULLION_GRAFT_HPP
#define MULLION_GRAFT_HPP

#include "mullion.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace mullion {

namespace detail {

// What a pointer to a virtual member function holds.
struct member_pointer {
    std::uintptr_t offset_plus_one; // in the table, in bytes; odd, as no address is
    std::ptrdiff_t adjustment;      // to the part of the object whose table it is
};

[[noreturn]] inline void slot_left_out()
{
    std::fputs("mullion::graft: a virtual function was called that `Slots` leaves out\n", stderr);
    std::abort();
}

// What stands in front of a graft's table: all grafts of an object, the last first.
struct graft_link {
    std::uintptr_t *below;   // the table that it has replaced
    const void *method;      // whose thunk it is: the address of one variable for each method
};

// `Nothrow`: the method is noexcept.
template <auto Method, std::size_t Slots, bool Nothrow, class C, class R, class... A>
class graft_of {
public:
    using replacement = std::function<R(C &, A...)>;

    // In place of the method: `function`, which is given the object and the arguments.
    // What it throws as a mullion::error makes the original answer; in place of a method that is
    // noexcept, whatever it throws.
    graft_of(C &object, replacement function) : place_(vptr_of(object)), copy_(new copy)
    {
        // Offset to top and type information stand in front of the first slot.
        word *original = __atomic_load_n(place_, __ATOMIC_ACQUIRE);
        for (std::size_t index = 0; index < Slots + 2; index++)
            copy_->table()[index - 2] = original[index - 2];
        for (std::size_t index = Slots; index < Slots + left_out; index++)
            copy_->table()[index] = reinterpret_cast<word>(slot_left_out);
        copy_->table()[-3] = reinterpret_cast<word>(static_cast<graft_link *>(copy_.get()));
        copy_->table()[slot()] = reinterpret_cast<word>(thunk);
        copy_->below = original;
        copy_->method = &tag;
        copy_->original = reinterpret_cast<plain *>(original[slot()]);
        copy_->function = std::move(function);
        __atomic_store_n(place_, copy_->table(), __ATOMIC_RELEASE);
    }
    // In place of the method: a function of a domain. `verify` makes a value of what it returns.
    template <class Verify>
    graft_of(C &object, mullion::function<R(A...)> function, Verify verify)
        : graft_of(object, [function, verify](C &, A... arguments) -> R {
              if constexpr (std::is_void_v<R>)
                  function(arguments...);
              else
                  return function(arguments...).copy_and_verify(verify);
          })
    {
    }
    graft_of(const graft_of &) = delete;
    graft_of &operator=(const graft_of &) = delete;

    // Takes it back.
    ~graft_of()
    {
        copy_->active.store(false, std::memory_order_release);
        if (__atomic_load_n(place_, __ATOMIC_ACQUIRE) == copy_->table())
            __atomic_store_n(place_, copy_->below, __ATOMIC_RELEASE);
        else
            // A later graft still refers to the copy: it stays, and lets the original answer.
            (void)copy_.release();
    }

    // How often the original answered because the extension did not.
    std::uint64_t failures() const noexcept { return copy_->failures.load(std::memory_order_relaxed); }

private:
    using word = std::uintptr_t;
    using plain = R(C *, A...) noexcept(Nothrow);
    // Slots that are filled with an end, in case that `Slots` is too small.
    static constexpr std::size_t left_out = 16;
    static inline const char tag = 0;

    struct copy : graft_link {
        std::array<word, 3 + Slots + left_out> words{};
        plain *original;
        replacement function;
        std::atomic<bool> active{true};
        std::atomic<std::uint64_t> failures{0};
        word *table() { return words.data() + 3; }
    };

    static member_pointer method()
    {
        const auto method = Method;
        member_pointer parts;
        static_assert(sizeof method == sizeof parts);
        std::memcpy(&parts, &method, sizeof parts);
        if (!(parts.offset_plus_one & 1))
            throw std::invalid_argument("mullion::graft: the function is not virtual");
        if ((parts.offset_plus_one - 1) / sizeof(word) >= Slots)
            throw std::invalid_argument("mullion::graft: the function lies behind the last slot");
        return parts;
    }
    static std::size_t slot() { return (method().offset_plus_one - 1) / sizeof(word); }
    static word **vptr_of(C &object)
    {
        auto *part = reinterpret_cast<char *>(const_cast<std::remove_const_t<C> *>(&object)) + method().adjustment;
        return reinterpret_cast<word **>(part);
    }

    // What the slot holds: called as the method is, with the object in front.
    static R thunk(C *self, A... arguments) noexcept(Nothrow)
    {
        return call(find(__atomic_load_n(vptr_of(*self), __ATOMIC_ACQUIRE)), self, arguments...);
    }
    // The uppermost graft of this method below a table. There is one: its thunk was called.
    static copy *find(word *table)
    {
        auto *link = reinterpret_cast<graft_link *>(table[-3]);
        while (link->method != &tag)
            link = reinterpret_cast<graft_link *>(link->below[-3]);
        return static_cast<copy *>(link);
    }
    static R call(copy *graft, C *self, A... arguments)
    {
        if (graft->active.load(std::memory_order_acquire)) {
            try {
                return graft->function(*self, arguments...);
            } catch (const error &) {
                graft->failures.fetch_add(1, std::memory_order_relaxed);
            } catch (...) {
                if constexpr (!Nothrow)
                    throw;
                graft->failures.fetch_add(1, std::memory_order_relaxed);
            }
        }
        // Another graft of the same method below: its thunk would begin at the top again.
        if (graft->original == thunk)
            return call(find(graft->below), self, arguments...);
        return graft->original(self, arguments...);
    }

    word **place_;
    std::unique_ptr<copy> copy_;
};

} // namespace detail

template <auto Method, std::size_t Slots, class M = decltype(Method)>
class graft;

// Every kind of virtual function: const, with & behind it, noexcept.
#define MULLION_GRAFT(object, qualifiers, nothrow)                                                            \
    template <auto Method, std::size_t Slots, class C, class R, class... A>                                   \
    class graft<Method, Slots, R (C::*)(A...) qualifiers noexcept(nothrow)>                                   \
        : public detail::graft_of<Method, Slots, nothrow, object, R, A...> {                                  \
        using detail::graft_of<Method, Slots, nothrow, object, R, A...>::graft_of;                            \
    };
MULLION_GRAFT(C, , false)
MULLION_GRAFT(C, , true)
MULLION_GRAFT(const C, const, false)
MULLION_GRAFT(const C, const, true)
MULLION_GRAFT(C, &, false)
MULLION_GRAFT(C, &, true)
MULLION_GRAFT(const C, const &, false)
MULLION_GRAFT(const C, const &, true)
#undef MULLION_GRAFT

} // namespace mullion

#endif
