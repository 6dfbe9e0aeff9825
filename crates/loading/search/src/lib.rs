//! Finds the assertions by which a request might be granted (RFC 2704, section 5).
//!
//! The values of principals start at the least one, those of the requesters at the greatest, and grow. Whenever a
//! principal's value grows, its places among the licensees of assertions grow with it, and may make the authorizers'
//! values grow. That ends, cycles or not, because values only grow and there are finitely many; what it ends in is the
//! least fixpoint. Each place among licensees is looked up once, and changed no more often than there are values.
//!
//! This crate is not trusted. It has neither the standard library nor a dependency nor `unsafe`, and it says no more than
//! an order of assertions. `crates/loading/decide` goes through that order by itself: signatures, conditions and
//! licensees. Values only grow, and only by assertions that hold, so no order grants more than there is. A fault here
//! refuses what might have been granted.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod tree;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use tree::{Place, Tree};

/// Who the licensees of an assertion are.
#[derive(Clone, Debug)]
pub enum Form<P> {
    /// Nobody.
    Nobody,
    /// Everybody, as there is no such field.
    Everybody,
    /// This principal; `None`: what names it names nobody.
    One(Option<P>),
    /// So many of these.
    Enough(usize, Vec<Form<P>>),
}

impl<P> Form<P> {
    /// Visits the principals, in order.
    pub fn each<'a>(&'a self, visit: &mut impl FnMut(&'a P)) {
        match self {
            Form::Nobody | Form::Everybody | Form::One(None) => {}
            Form::One(Some(principal)) => visit(principal),
            Form::Enough(_, parts) => parts.iter().for_each(|part| part.each(visit)),
        }
    }
}

/// A query, and the assertions that it is asked of.
pub trait Question {
    /// Keys and names.
    type Principal: Clone + Ord;
    /// Numbers of assertions.
    type Assertion: Copy + Ord;
    /// The budget is used up.
    type Stop;

    /// The assertions whose licensees cannot be looked up.
    fn open(&self) -> Vec<Self::Assertion>;

    /// The assertions that name a principal as a licensee.
    fn naming(&self, principal: &Self::Principal) -> Vec<Self::Assertion>;

    /// The licensees of an assertion.
    fn licensees(&mut self, id: Self::Assertion) -> Result<&Form<Self::Principal>, Self::Stop>;

    /// The authorizer of an assertion and the rank that its conditions give, if it counts and they give any.
    fn hold(&mut self, id: Self::Assertion)
    -> Result<Option<(Self::Principal, usize)>, Self::Stop>;

    /// Pays for so many steps from one assertion to another.
    fn pay(&mut self, steps: usize) -> Result<(), Self::Stop>;
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found<P, A> {
    /// The assertions that each gave their authorizer more, in an order in which they do.
    pub raised: Vec<A>,
    /// What was looked at, and the rank that its licensees have together.
    pub seen: Vec<(A, usize)>,
    /// The chain from the root down.
    pub chain: Vec<Step<P, A>>,
}

/// One assertion of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<P, A> {
    /// Which.
    pub assertion: A,
    /// Whom it speaks for.
    pub authorizer: P,
    /// Those of its licensees who have a rank.
    pub licensees: Vec<P>,
    /// The authorizer's rank.
    pub rank: usize,
}

/// A chain, from the top down.
type ChainOf<Q> = Vec<Step<<Q as Question>::Principal, <Q as Question>::Assertion>>;

/// What a search over a question finds.
pub type FoundOf<Q> = Found<<Q as Question>::Principal, <Q as Question>::Assertion>;

/// Looks for the assertions that give `root` the most, where `requesters` have the rank `greatest`.
///
/// # Errors
/// The budget is used up.
pub fn search<Q: Question>(
    question: &mut Q,
    root: &Q::Principal,
    requesters: &[Q::Principal],
    greatest: usize,
) -> Result<FoundOf<Q>, Q::Stop> {
    let mut search = Search {
        question,
        greatest,
        ranks: BTreeMap::new(),
        support: BTreeMap::new(),
        seen: BTreeMap::new(),
        places: BTreeMap::new(),
        growing: VecDeque::new(),
        raised: Vec::new(),
    };
    search.run(root, requesters)?;
    let chain = search.chain(root)?;
    let seen = search.seen.iter();
    Ok(Found {
        seen: seen.map(|(id, tree)| (*id, tree.rank())).collect(),
        raised: search.raised,
        chain,
    })
}

struct Search<'a, Q: Question> {
    question: &'a mut Q,
    greatest: usize,
    ranks: BTreeMap<Q::Principal, usize>,
    /// The assertion that gave a principal its rank.
    support: BTreeMap<Q::Principal, Q::Assertion>,
    seen: BTreeMap<Q::Assertion, Tree>,
    /// Where each principal stands among the licensees that were looked at.
    places: BTreeMap<Q::Principal, Vec<(Q::Assertion, Place)>>,
    /// Principals whose rank has grown.
    growing: VecDeque<Q::Principal>,
    raised: Vec<Q::Assertion>,
}

impl<Q: Question> Search<'_, Q> {
    fn run(&mut self, root: &Q::Principal, requesters: &[Q::Principal]) -> Result<(), Q::Stop> {
        if self.greatest == 0 {
            return Ok(());
        }
        for requester in requesters {
            self.ranks.insert(requester.clone(), self.greatest);
            self.growing.push_back(requester.clone());
        }
        for id in self.question.open() {
            self.look_at(id)?;
        }
        while let Some(principal) = self.growing.pop_front() {
            if self.rank(root) == self.greatest {
                return Ok(());
            }
            for id in self.question.naming(&principal) {
                self.look_at(id)?;
            }
            self.grow(&principal)?;
        }
        Ok(())
    }

    fn rank(&self, principal: &Q::Principal) -> usize {
        self.ranks.get(principal).copied().unwrap_or(0)
    }

    fn look_at(&mut self, id: Q::Assertion) -> Result<(), Q::Stop> {
        self.question.pay(1)?;
        if self.seen.contains_key(&id) {
            return Ok(());
        }
        let (mut tree, leaves) = Tree::new(self.question.licensees(id)?, self.greatest + 1);
        for (place, principal) in leaves {
            tree.raise(place, self.ranks.get(&principal).copied().unwrap_or(0));
            self.places.entry(principal).or_default().push((id, place));
        }
        self.seen.insert(id, tree);
        self.settle(id)
    }

    /// Raises the places of a principal to its rank.
    fn grow(&mut self, principal: &Q::Principal) -> Result<(), Q::Stop> {
        let rank = self.rank(principal);
        let places = self.places.get(principal).cloned().unwrap_or_default();
        self.question.pay(places.len())?;
        for (id, place) in places {
            let tree = self.seen.get_mut(&id);
            if tree.is_some_and(|tree| tree.raise(place, rank)) {
                self.settle(id)?;
            }
        }
        Ok(())
    }

    /// Gives the authorizer of an assertion what its licensees and conditions give.
    fn settle(&mut self, id: Q::Assertion) -> Result<(), Q::Stop> {
        let licensees = self.seen.get(&id).map_or(0, Tree::rank);
        if licensees == 0 {
            return Ok(());
        }
        if let Some((authorizer, conditions)) = self.question.hold(id)? {
            let rank = licensees.min(conditions);
            if rank > self.rank(&authorizer) {
                self.ranks.insert(authorizer.clone(), rank);
                self.support.insert(authorizer.clone(), id);
                self.raised.push(id);
                self.growing.push_back(authorizer);
            }
        }
        Ok(())
    }

    /// The assertions by which `root` has its rank, from the top down.
    fn chain(&mut self, root: &Q::Principal) -> Result<ChainOf<Q>, Q::Stop> {
        let mut chain = Vec::new();
        let mut followed = BTreeSet::new();
        let mut pending = VecDeque::from([root.clone()]);
        while let Some(authorizer) = pending.pop_front() {
            let Some(id) = self.support.get(&authorizer).copied() else {
                continue;
            };
            if !followed.insert(id) {
                continue;
            }
            let ranks = &self.ranks;
            let (mut named, mut licensees) = (0, Vec::new());
            self.question.licensees(id)?.each(&mut |principal| {
                named += 1;
                if ranks.get(principal).is_some_and(|rank| *rank > 0) {
                    licensees.push(principal.clone());
                }
            });
            self.question.pay(named)?;
            licensees.dedup();
            pending.extend(licensees.iter().cloned());
            chain.push(Step {
                assertion: id,
                rank: self.rank(&authorizer),
                authorizer,
                licensees,
            });
        }
        Ok(chain)
    }
}
