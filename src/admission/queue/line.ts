/** A place in a line. */
export interface InLine {
  /** Smaller stands further ahead; of equals, the one added first. */
  readonly order: number;
  /** Used by the line only; null outside of a line. */
  block: object | null;
}

/** A stretch of the line. */
interface Block<T> {
  members: T[];
}

/** At twice that many a block is cut in two: short enough to search, long enough that there are few. */
const BLOCK_SIZE = 256;

/**
 * A line that can be asked for a place, left from anywhere and entered anywhere, at the price of a few hundred
 * comparisons, whether it holds ten or 100,000.
 */
export class Line<T extends InLine> {
  #blocks: Block<T>[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Behind all whose order is not greater. Nearly always that is the end. */
  add(one: T): void {
    let at = this.#blocks.length - 1;
    while (at > 0 && firstOrder(this.#blocks[at] as Block<T>) > one.order) at--;
    const block = this.#blocks[at] ?? this.#newBlock();
    let place = block.members.length;
    while (place > 0 && (block.members[place - 1] as T).order > one.order) place--;
    block.members.splice(place, 0, one);
    one.block = block;
    this.#size++;
    if (block.members.length >= 2 * BLOCK_SIZE) this.#cut(block);
  }

  /** Removes the first one. */
  shift(): T | undefined {
    const first = this.#blocks[0]?.members[0];
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** Does nothing to one that is in no line. */
  remove(one: T): void {
    const block = one.block as Block<T> | null;
    if (block === null) return;
    block.members.splice(block.members.indexOf(one), 1);
    one.block = null;
    this.#size--;
    if (block.members.length === 0) this.#blocks.splice(this.#blocks.indexOf(block), 1);
  }

  /** How many stand before this one, which must be in the line. */
  ahead(one: T): number {
    let ahead = 0;
    for (const block of this.#blocks) {
      if (block === one.block) return ahead + block.members.indexOf(one);
      ahead += block.members.length;
    }
    return ahead;
  }

  #newBlock(): Block<T> {
    const block: Block<T> = { members: [] };
    this.#blocks.push(block);
    return block;
  }

  #cut(block: Block<T>): void {
    const behind: Block<T> = { members: block.members.splice(BLOCK_SIZE) };
    for (const one of behind.members) one.block = behind;
    this.#blocks.splice(this.#blocks.indexOf(block) + 1, 0, behind);
  }
}

const firstOrder = <T extends InLine>(block: Block<T>): number => (block.members[0] as T).order;
