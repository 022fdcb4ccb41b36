import { judgeWitness } from '../../core/doctor/mysql-checks.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { readWitnessFacts } from '../../mysql/read-facts.js';
import type { Connections } from '../../process/connections.js';
import { createWitnessStore, type WitnessStore } from './witness-store.js';

/** The service that the routes and commands of the witness need. */
export interface WitnessServices {
  readonly witness: Pick<WitnessStore, 'list' | 'close'>;
}

export const openWitness = (connections: Connections<'mysql' | 'redis'>): WitnessServices => ({
  witness: createWitnessStore(connections.mysql()),
});

/** Says why the binary log cannot be followed, and what to do. Null: it can. @throws OperationalError mysql */
export async function problemOf(mysql: MysqlPool): Promise<string | null> {
  const judged = judgeWitness(await readWitnessFacts(mysql));
  return judged.verdict === 'wrong' ? `${judged.says} ${judged.todo}` : null;
}
