#include "kv/block_pool.hpp"
#include "test.hpp"

#include <memory>

namespace mashbox {
namespace {

using kv::BlockPool;
using kv::Sequence;
using test::check;
using test::Test;

const Test acquireAndRelease{"kv: blocks come back when their last holder lets go", [] {
  BlockPool pool(2);
  const auto a = pool.acquire();
  const auto b = pool.acquire();
  check(a && b && *a != *b && pool.freeBlocks() == 0 && pool.totalBlocks() == 2);
  pool.retain(*a);
  check(pool.shared(*a) && !pool.shared(*b));
  pool.release(*a);
  check(!pool.shared(*a) && pool.freeBlocks() == 0);
  pool.release(*a);
  check(pool.freeBlocks() == 1);
  const auto again = pool.acquire();
  check(again && *again == *a);
}};

const Test exhaustion{"kv: an empty pool is a typed error, and a failed reserve takes nothing", [] {
  BlockPool pool(3);
  Sequence first(pool), second(pool);
  check(static_cast<bool>(first.reserve(kv::BlockTokens + 1)));
  check(first.blocks().size() == 2 && pool.freeBlocks() == 1);
  const auto refused = second.reserve(2 * kv::BlockTokens);
  check(!refused && refused.error().kind == ErrorKind::OutOfMemory);
  check(second.blocks().empty() && pool.freeBlocks() == 1);
  check(static_cast<bool>(second.reserve(kv::BlockTokens)));
  check(!pool.acquire());
}};

const Test reserveIsIdempotent{"kv: reserved room is used before more is taken", [] {
  BlockPool pool(4);
  Sequence sequence(pool);
  check(static_cast<bool>(sequence.reserve(40)) && static_cast<bool>(sequence.reserve(64)));
  check(sequence.blocks().size() == 2 && sequence.length() == 0);
  sequence.advance(64);
  check(sequence.length() == 64 && static_cast<bool>(sequence.reserve(0)) && sequence.blocks().size() == 2);
  check(static_cast<bool>(sequence.reserve(1)) && sequence.blocks().size() == 3);
}};

const Test forkShares{"kv: a fork shares whole blocks and outlives its source", [] {
  BlockPool pool(8);
  auto source = std::make_unique<Sequence>(pool);
  check(static_cast<bool>(source->reserve(100)));
  source->advance(100);
  Sequence fork = source->fork(95);
  check(fork.length() == 64 && fork.blocks().size() == 2);
  check(pool.shared(fork.blocks()[0]) && pool.shared(fork.blocks()[1]) && !pool.shared(source->blocks()[2]));
  check(source->fork(1000).length() == 96 && pool.freeBlocks() == 4);
  source.reset();
  check(pool.freeBlocks() == 6 && !pool.shared(fork.blocks()[0]));
  Sequence moved(std::move(fork));
  check(moved.length() == 64 && fork.length() == 0 && fork.blocks().empty());
  moved = Sequence(pool);
  check(pool.freeBlocks() == 8);
}};

const Test truncate{"kv: truncate gives back the blocks behind the new end", [] {
  BlockPool pool(4);
  Sequence sequence(pool);
  check(static_cast<bool>(sequence.reserve(128)));
  sequence.advance(128);
  sequence.truncate(33);
  check(sequence.length() == 33 && sequence.blocks().size() == 2 && pool.freeBlocks() == 2);
  sequence.truncate(200);
  check(sequence.length() == 33);
  sequence.truncate(0);
  check(sequence.blocks().empty() && pool.freeBlocks() == 4);
}};

} // namespace
} // namespace mashbox
