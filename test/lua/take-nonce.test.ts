import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { nonceKey, NONCES_KEY } from '../../src/redis/keys.js';
import { redisServerOrSkip, startDurableRedis, type DurableRedis } from '../helpers/private-redis.js';
import { ScriptRunner } from './script-runner.js';
import { until } from '../chaos/harness/wait.js';

const LIFE_MS = 60_000;

// A separate server, which the test restarts with and without data.
describe('lua/take-nonce-2.lua', () => {
  let server: DurableRedis | undefined;
  let runner: ScriptRunner;
  before(async function () {
    server = await startDurableRedis(redisServerOrSkip(this));
    runner = await ScriptRunner.open(server.url);
  });
  after(async () => {
    await runner?.close();
    await server?.stop();
  });

  const take = async (nonce: string, signedAtMs: number): Promise<unknown> =>
    runner.connection.run('take-nonce', [nonceKey('k1', nonce), NONCES_KEY], [LIFE_MS, signedAtMs]);
  /** Accepts answers only from the next server. */
  const restart = async (): Promise<void> => {
    const { redis } = runner.connection;
    const runId = async (): Promise<string | undefined> => /run_id:(\w+)/.exec(await redis.info('server'))?.[1];
    const before = await runId();
    await server?.restart();
    await until('it is connected again', () => redis.status === 'ready', { everyMs: 10 });
    expect(await runId(), 'the fault happened').not.to.equal(before);
  };
  const nowMs = (): Promise<number> => runner.nowMs();

  it('returns `fresh`, then `used`, and forgets used nonces when their life is over', async () => {
    const nonce = randomUUID();
    const signedAtMs = (await nowMs()) + 1000; // Redis reports its start time only to the second
    expect(await take(nonce, signedAtMs)).to.equal('fresh');
    expect(await take(nonce, signedAtMs)).to.equal('used');
    expect(await runner.connection.redis.pttl(nonceKey('k1', nonce))).to.be.within(1, LIFE_MS);
  });

  it("returns `outdated`, and stores no nonce, if the signature is older than the server's last start", async () => {
    const nonce = randomUUID();
    expect(await take(nonce, (await nowMs()) - 3_600_000)).to.equal('outdated');
    expect(await runner.connection.redis.exists(nonceKey('k1', nonce))).to.equal(0);
  });

  it('refuses earlier signatures and accepts newer signatures after a restart from the log', async () => {
    const [used, unused] = [randomUUID(), randomUUID()];
    const signedAtMs = await nowMs();
    await take(used, signedAtMs);
    await restart();
    for (const nonce of [used, unused]) expect(await take(nonce, signedAtMs)).to.equal('outdated');
    expect(await take(unused, await nowMs())).to.equal('fresh');
  });

  it('refuses earlier signatures and accepts newer signatures after a restart without data', async () => {
    const used = randomUUID();
    const signedAtMs = await nowMs();
    await take(used, signedAtMs);
    await runner.connection.redis.del(nonceKey('k1', used), NONCES_KEY);
    await restart();
    expect(await take(used, signedAtMs - 1000)).to.equal('outdated');
    expect(await take(randomUUID(), (await nowMs()) + 1000)).to.equal('fresh');
  });
});
