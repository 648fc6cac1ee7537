#include "kv/block_pool.hpp"
#include "model_session.hpp"
#include "test.hpp"

namespace mashbox {
namespace {

using kv::BlockPool;
using kv::Sequence;
using kv::StatePool;
using test::check;
using test::expect;
using test::Test;

void grow(Sequence& sequence, uint32_t tokens) {
  expect(sequence.reserve(tokens));
  sequence.advance(tokens);
}

const Test plain{"kv states: a model without recurrent layers has none", [] {
  BlockPool pool(4);
  Sequence sequence(pool);
  grow(sequence, 40);
  check(!pool.states() && !sequence.state());
  check(sequence.snapshot().error().kind == ErrorKind::Rejected && sequence.remember().error().subject == "snapshot");
  check(sequence.truncate(33) == 33);
}};

const Test oneEach{"kv states: every sequence holds one, and gives it back", [] {
  BlockPool pool(8, StatePool(2, 0));
  Sequence a(pool);
  auto b = std::make_unique<Sequence>(pool);
  check(pool.states()->freeStates() == 2);
  grow(a, 10);
  grow(*b, 10);
  check(pool.states()->freeStates() == 0 && a.state()->id() != b->state()->id());
  Sequence c(pool);
  const auto refused = c.reserve(1);
  check(!refused && refused.error().kind == ErrorKind::OutOfMemory && refused.error().subject == "states");
  check(c.blocks().empty() && pool.freeBlocks() == 6);
  b.reset();
  grow(c, 1);
  check(pool.states()->freeStates() == 0);
  a = Sequence(pool);
  check(pool.states()->freeStates() == 1);
}};

const Test copyOnWrite{"kv states: a state with a snapshot is copied before it is written", [] {
  BlockPool pool(8, StatePool(1, 1));
  Sequence sequence(pool);
  grow(sequence, 64);
  const kv::StateId first = sequence.state()->id();
  check(!sequence.state()->source());
  {
    const auto snapshot = expect(sequence.snapshot());
    check(snapshot.length() == 64 && snapshot.state() == first && pool.states()->freeSnapshots() == 0);
    // A second one of the same state needs no memory, one of another state has no place.
    const auto again = expect(sequence.snapshot());
    check(again.state() == first);
    expect(sequence.reserve(1));
    check(sequence.state()->id() != first && *sequence.state()->source() == first);
    expect(sequence.reserve(2));
    check(*sequence.state()->source() == first && expect(sequence.snapshot()).state() == first);
    sequence.advance(1);
    check(!sequence.state()->source());
    const auto refused = sequence.snapshot();
    check(!refused && refused.error().kind == ErrorKind::OutOfMemory && refused.error().subject == "snapshots");
  }
  check(pool.states()->freeSnapshots() == 1 && pool.states()->freeStates() == 1);
  const kv::StateId second = sequence.state()->id();
  grow(sequence, 1);
  check(sequence.state()->id() == second);
}};

const Test inPlace{"kv states: a sequence goes back a few tokens within its last chunk, else to a snapshot, else to the start", [] {
  BlockPool pool(16, StatePool(1, 2));
  Sequence sequence(pool);
  grow(sequence, 30);
  expect(sequence.remember());
  grow(sequence, 10);
  check(sequence.truncate(40) == 40 && sequence.truncate(99) == 40);
  check(sequence.truncate(34) == 34 && sequence.truncate(32) == 32);
  check(sequence.truncate(31) == 30 && sequence.blocks().size() == 1);
  grow(sequence, 1);
  check(sequence.truncate(30) == 30);
  grow(sequence, 36);
  check(sequence.length() == 66 && sequence.truncate(64) == 64);
  // The chunk that ended at 64 is folded in.
  check(sequence.truncate(63) == 30);
  check(sequence.truncate(29) == 0 && sequence.blocks().empty() && pool.states()->freeStates() == 3);
}};

const Test nearest{"kv states: truncate takes the nearest snapshot below and forgets those behind", [] {
  BlockPool pool(16, StatePool(1, 3));
  Sequence sequence(pool);
  for (const uint32_t tokens : {50, 50, 100}) {
    grow(sequence, tokens);
    expect(sequence.remember());
  }
  grow(sequence, 50);
  check(pool.states()->freeSnapshots() == 0);
  check(sequence.truncate(180) == 100 && pool.states()->freeSnapshots() == 1);
  grow(sequence, 60);
  check(sequence.truncate(99) == 50 && pool.states()->freeSnapshots() == 2);
  sequence.forget();
  check(pool.states()->freeSnapshots() == 3 && sequence.length() == 50);
  grow(sequence, 1);
  check(sequence.truncate(49) == 0);
}};

const Test restore{"kv states: restore goes to a held snapshot, and to none that is longer than the sequence", [] {
  BlockPool pool(16, StatePool(2, 2));
  Sequence sequence(pool);
  grow(sequence, 70);
  const auto at70 = expect(sequence.snapshot());
  grow(sequence, 100);
  expect(sequence.restore(at70));
  check(sequence.length() == 70 && sequence.blocks().size() == 3);
  expect(sequence.reserve(1));
  check(*sequence.state()->source() == at70.state());
  check(sequence.truncate(60) == 0);
  check(sequence.restore(at70).error().kind == ErrorKind::Rejected);
}};

const Test forks{"kv states: a fork starts at the nearest snapshot that ends a block", [] {
  BlockPool pool(32, StatePool(3, 3));
  Sequence sequence(pool);
  for (const uint32_t tokens : {64, 36, 60}) {
    grow(sequence, tokens);
    expect(sequence.remember());
  }
  check(sequence.length() == 160);
  const Sequence whole = sequence.fork(1000), partial = sequence.fork(159), none = sequence.fork(63);
  check(whole.length() == 160 && whole.blocks().size() == 5 && pool.shared(whole.blocks()[4]));
  check(partial.length() == 64 && partial.blocks().size() == 2 && none.length() == 0 && none.blocks().empty());
}};

} // namespace
} // namespace mashbox
