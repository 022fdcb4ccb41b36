/** A place in a line. */
export interface InLine {
  /** Members with a smaller order are further ahead. Equal members are in the order in which they were added. */
  readonly order: number;
  /** Used by the line only. Null outside of a line. */
  block: object | null;
}

/** A stretch of the line. */
interface Block<T> {
  members: T[];
}

/** Half of the size at which a block is cut in two: short enough to search, long enough for few blocks. */
const BLOCK_SIZE = 256;

/**
 * A line that finds a place, adds anywhere and removes anywhere, at the cost of a few hundred comparisons, whether it
 * holds ten members or 100,000.
 */
export class Line<T extends InLine> {
  #blocks: Block<T>[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds a member behind all members whose order is not greater. That is nearly always the end. */
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

  /** Removes the first member. */
  shift(): T | undefined {
    const first = this.#blocks[0]?.members[0];
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** Removes a member. Does nothing if the member is in no line. */
  remove(one: T): void {
    const block = one.block as Block<T> | null;
    if (block === null) return;
    block.members.splice(block.members.indexOf(one), 1);
    one.block = null;
    this.#size--;
    if (block.members.length === 0) this.#blocks.splice(this.#blocks.indexOf(block), 1);
  }

  /** Returns the number of members ahead of this member, which must be in the line. */
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
