import { expect } from 'chai';
import { userInfo } from 'node:os';
import { SYSTEM_ACTOR } from '../../src/core/ports/sale-repository.js';
import { Buyers, userIds } from '../chaos/harness/buyers.js';
import { runCommand, RunningCommand, type CommandEnd } from '../helpers/command.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { parkBatches } from './park-batches.js';
import { found, until } from '../chaos/harness/wait.js';

/** Too many for a command without confirmation. */
const DEAD_LETTERS = 150;
/** Slow enough to stop a run halfway on a busy machine. */
const PER_SECOND = '30';

describe('compensation: replay and discard of dead letters', () => {
  let api: Program;
  const system = useSystem(async ({ programs }) => {
    const keeper = programs.start('keeper', { env: { KEEPER_EVERY_MS: '500', REDRIVE_AFTER_MS: '600000' } });
    [api] = await Promise.all([
      programs.start('api'),
      programs.start('worker', { env: { WORKER_RETRY_FIRST_MS: '10' } }),
      keeper,
    ]);
  });

  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
  const dlq = (...args: string[]): Promise<CommandEnd> => runCommand(['dlq', ...args], system.stack.env);
  const count = async (sql: string, ...values: string[]): Promise<number> => {
    const [row] = await system.stack.mysql.query<{ n: string | number }>(`SELECT COUNT(*) AS n FROM ${sql}`, values);
    return Number(row?.n);
  };

  it('turns a parked batch into an order by a replay, or returns its unit by a discard [M8]', async () => {
    const { stack } = system;
    const [first, second] = [await openSale(stack, { stock: 10 }), await openSale(stack, { stock: 10 })];
    const [ann, bob] = [buyersOf(first.saleId), buyersOf(second.saleId)];
    await Promise.all([parkBatches(stack, first.saleId, ['ann']), parkBatches(stack, second.saleId, ['bob'])]);
    const parkedOf = async (saleId: string) => (await dlq('list', '--sale', saleId, '--json')).lines[0];
    const toReplay = await found('the dead letter of ann', () => parkedOf(first.saleId));
    expect(toReplay).to.include({ reason: 'retries_exhausted', state: 'parked', replays: 0 });
    const shown = await dlq('show', String(toReplay.deadLetterId), '--json');
    expect(shown.lines[0]?.batch).to.deep.include({ saleId: first.saleId, purchases: [['ann', 'k1', 1]] });

    const dry = await dlq('replay', '--all-matching', '--sale', first.saleId, '--dry-run');
    expect([dry.code, dry.stdout.includes('nothing was done')]).to.deep.equal([0, true]);
    const replay = await dlq('replay', '--all-matching', '--sale', first.saleId, '--key', 'k1', '--json');
    const [line, ...others] = replay.lines;
    expect(others).to.deep.equal([]);
    expect(line, replay.stderr).to.include({ deadLetterId: toReplay.deadLetterId });
    const byKeeper = ['already_closed', 'it is replayed']; // the keeper saw the order first
    expect([line?.outcome, line?.note]).to.deep.be.oneOf([['replayed', 'recorded: 1 live, 0 ended'], byKeeper]);
    expect(replay.code).to.equal(0);
    expect((await ann.settled('ann')).json.status).to.equal('ordered');
    expect(await expectInvariants(stack, first.saleId)).to.include({ sold: 1, rows: 1, unitsLeft: 9 });

    const toDiscard = String((await parkedOf(second.saleId))?.deadLetterId);
    const discard = await dlq('discard', toDiscard, '--json');
    expect([discard.code, discard.lines[0]?.outcome], discard.stderr).to.deep.equal([0, 'discarded']);
    expect((await dlq('discard', toDiscard)).code, 'a repeat is done').to.equal(0);
    expect((await dlq('replay', toDiscard)).code, 'a discarded dead letter cannot be replayed').to.equal(1);
    const figures = await expectInvariants(stack, second.saleId);
    expect(figures).to.include({ sold: 0, rows: 1, failedRows: 1, unitsLeft: 10 });
    expect((await bob.status('bob')).json).to.include({ status: 'failed', reason: 'discarded' });
    expect((await bob.buy('bob', { requestId: 'k2' }))?.status, 'and may try again').to.equal(202);

    const audit = await stack.mysql.query<{ actor: string; action: string }>(
      'SELECT actor, action FROM audit_log WHERE subject IN (?, ?) ORDER BY id',
      [`dead_letter:${String(toReplay.deadLetterId)}`, `dead_letter:${toDiscard}`],
    );
    expect(audit.map(({ action }) => action)).to.deep.equal([
      'dead_letter.replay_begun',
      'dead_letter.replayed',
      'dead_letter.discarded',
    ]);
    const actor = userInfo().username;
    const [begun, end, given] = audit.map((row) => row.actor);
    expect([begun, given]).to.deep.equal([actor, actor]);
    expect(end).to.equal(line?.outcome === 'replayed' ? actor : SYSTEM_ACTOR);
  });

  it(`turns each of ${DEAD_LETTERS} dead letters into one order although the replay is killed once and stopped once [M8]`, async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: DEAD_LETTERS });
    await parkBatches(stack, saleId, userIds(DEAD_LETTERS));
    const parked = (): Promise<number> => count("dead_letters WHERE sale_id = ? AND state = 'parked'", saleId);
    const begun = (): Promise<number> =>
      count(
        "audit_log a JOIN dead_letters d ON a.subject = CONCAT('dead_letter:', d.id)" +
          " WHERE d.sale_id = ? AND a.action = 'dead_letter.replay_begun'",
        saleId,
      );
    const args = ['replay', '--all-matching', '--sale', saleId, '--rate', PER_SECOND, '--json'];

    const unasked = await dlq(...args);
    expect([unasked.code, unasked.lines.length], 'a large bulk needs --yes').to.deep.equal([2, DEAD_LETTERS]);
    expect([await parked(), await begun()]).to.deep.equal([DEAD_LETTERS, 0]);

    const startedMs = Date.now();
    const killed = await new RunningCommand(['dlq', ...args, '--yes'], stack.env).signalAfter(20, 'SIGKILL');
    expect(killed.signal).to.equal('SIGKILL');
    const [afterKill, begunByThen] = [await parked(), await begun()];
    expect(afterKill, 'it was half way').to.be.within(1, DEAD_LETTERS - 1);
    const halfWay = await count(
      "dead_letters WHERE sale_id = ? AND state = 'parked' AND replay_started_at IS NOT NULL",
      saleId,
    );

    const stopped = await new RunningCommand(['dlq', ...args, '--yes'], stack.env).signalAfter(20, 'SIGINT');
    expect(stopped.code, stopped.stderr).to.equal(1);
    expect(stopped.stderr).to.contain('Run the same command again to continue');
    const afterStop = await parked();
    expect(afterStop).to.be.within(1, afterKill - 1);

    let runs = 2;
    await until('the command has replayed the rest', async () => {
      runs++;
      const { code, stderr } = await dlq(...args, '--yes');
      expect(code, stderr).to.be.oneOf([0, 1]); // 1 asks to run the command again, because a server answered late
      return code === 0;
    });
    const tookMs = Date.now() - startedMs;
    const replayedRows = await count("dead_letters WHERE sale_id = ? AND state = 'replayed'", saleId);
    expect([await parked(), replayedRows]).to.deep.equal([0, DEAD_LETTERS]);
    const figures = await expectInvariants(stack, saleId);
    expect(figures).to.include({
      rows: DEAD_LETTERS,
      liveRows: DEAD_LETTERS,
      sold: DEAD_LETTERS,
      unitsLeft: 0,
      duplicates: 0,
    });
    const begins = await begun();
    expect(begins, 'only the dead letters in progress may be published again').to.be.at.most(
      DEAD_LETTERS + (runs - 1) * 32,
    );
    console.log(
      `      ${DEAD_LETTERS} dead letters in ${(tookMs / 1000).toFixed(1)} s over ${runs} runs: killed with ${begunByThen} begun` +
        ` (${halfWay} half way), stopped with ${afterStop} left; ${begins} begun in all, ${figures.rows} orders, 0 twice`,
    );
    expect((await dlq(...args, '--yes')).lines, 'nothing is left').to.deep.equal([]);
  });
});
