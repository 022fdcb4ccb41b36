import type { Arena } from '../arena.js';

/**
 * For faults that are a matter of chance, as who is asked first: causes one again until it happens.
 * @param attempt hears its number, from 1; says whether the fault happened
 */
export async function biteInTries(
  arena: Arena,
  what: string,
  triesMax: number,
  attempt: (number: number) => Promise<boolean>,
): Promise<void> {
  let tries = 0;
  let happened = false;
  while (!happened && tries < triesMax) happened = await attempt(++tries);
  await arena.bite(tries === 1 ? what : `${what}, at try ${tries}`, () => happened, 0);
}
