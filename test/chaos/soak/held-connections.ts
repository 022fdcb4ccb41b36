import { closeConnections } from '../harness/http-client.js';
import type { Program } from '../harness/programs.js';
import { until } from '../harness/until.js';
import { openOf } from './samples.js';

/** To close what its peer has closed takes an api no time; a machine under load some. */
const HANG_UP_MAX_MS = 10_000;

/** Every buyer hangs up. @returns a sentence for each api that keeps connections all the same */
export async function heldForNobody(
  apis: readonly Pick<Program, 'pid'>[],
  withinMs = HANG_UP_MAX_MS,
): Promise<string[]> {
  closeConnections();
  const told: string[] = [];
  const leave = async ({ pid }: Pick<Program, 'pid'>): Promise<void> => {
    const guests = (): number => openOf({ pid })?.guests ?? 0;
    await until('nobody is connected', () => guests() === 0, withinMs).catch(() => {
      told.push(`api ${pid} holds ${guests()} connections whose buyers have hung up`);
    });
  };
  await Promise.all(apis.map(leave));
  return told;
}
