import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { z } from 'zod';
import { canaryTerms, judges } from '../../src/admission/rules/canary.js';
import { CurrentRules } from '../../src/admission/rules/current-rules.js';
import { createRuleRepository } from '../../src/mysql/rule-repository.js';
import { RuleAdmin } from '../../src/operate/rules/rule-admin.js';
import { systemClock } from '../../src/process/system-clock.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { createRuleBroadcast } from '../../src/redis/rule-broadcast.js';
import { createRuleReports } from '../../src/redis/rule-reports.js';
import { until } from '../chaos/harness/wait.js';
import { noAdmissionMetrics } from '../helpers/no-metrics.js';
import { silentLog } from '../helpers/silent-log.js';
import { stackEnv } from '../helpers/stack-env.js';
import { ownMysqlWorld, type MysqlWorld } from './repository-worlds.js';

const TERMS = canaryTerms.parse({ percent: 50 });
const TRIED = ['ann', 'bob', 'cy', 'dan', 'eve', 'fay'].find((userId) => judges({ ...TERMS, since: 2 }, userId)) ?? '';

/** The rules as a release without canaries reads them. It refuses any other field. */
const part = z.looseObject({});
const previousRules = z.strictObject({
  ...{ lists: part, limits: part, breaker: part, degrade: part, sign: part, queue: part, orders: part },
});

describe('rules shared with a release without canaries', () => {
  let world: MysqlWorld;
  let connection: RedisConnection;
  let key: string;
  beforeEach(async () => {
    world = await ownMysqlWorld();
    const options = { url: stackEnv().REDIS_URL, replyTimeoutMs: 5000, connectTimeoutMs: 3000 };
    connection = await connectRedis(options, silentLog);
    key = `sk:{entry}:rules:${randomUUID()}`;
  });
  afterEach(() => Promise.all([world?.close(), connection?.close()]));

  /** Begins a canary that denies a user. */
  async function begin(): Promise<CurrentRules> {
    const [repository, broadcast] = [createRuleRepository(world.pool), createRuleBroadcast(connection, key)];
    const admin = new RuleAdmin({ repository, broadcast, log: silentLog });
    await admin.publish({ lists: { mode: 'on' } }, 0, 'ann');
    const denying = { lists: { mode: 'on', users: { deny: [TRIED] } } };
    expect(await admin.publish(denying, 1, 'ann', TERMS)).to.include({ outcome: 'published', version: 2 });
    return new CurrentRules({
      ...{ repository, broadcast, clock: systemClock, metrics: noAdmissionMetrics, log: silentLog },
      reports: createRuleReports(connection, `${key}:apis`),
      reporter: { processId: randomUUID(), host: 'shop-1', pid: 7 },
    });
  }
  const inMysql = async (): Promise<string> => {
    const sql = 'SELECT rules_json FROM entry_rules ORDER BY version DESC LIMIT 1';
    const [row] = await world.pool.query<{ readonly rules_json: string }>(sql);
    return row?.rules_json ?? '';
  };
  const inRedis = async (): Promise<string> => {
    const [text = ''] = await connection.redis.zrevrangebyscore(key, '+inf', '(1', 'LIMIT', 0, 1);
    return text;
  };

  it('are the rules in force, in their old form, while a canary runs', async () => {
    const current = await begin();
    for (const text of [await inMysql(), await inRedis()]) {
      const { lists } = previousRules.parse(JSON.parse(text));
      expect(lists).to.have.nested.property('users.deny').that.deep.equals([]);
    }
    await current.runOnce();
    expect(current.of(TRIED).lists.users.deny, 'in this release').to.deep.equal([TRIED]);
    expect(current.rules.lists.users.deny).to.deep.equal([]);
  });

  it('end a canary when that release publishes them', async () => {
    const current = await begin();
    await current.start();
    const published = JSON.stringify({ lists: { mode: 'dry_run' } });
    const insert = 'INSERT INTO entry_rules (version, rules_json, actor) VALUES (3, ?, ?)';
    await world.pool.execute(insert, [published, 'ann']);
    await connection.redis.zadd(key, 3, published);
    await until('it follows that release', async () => {
      await current.runOnce();
      return current.standing.version === 3;
    });
    expect([current.rules.lists.mode, current.of(TRIED)]).to.deep.equal(['dry_run', current.rules]);
  });
});
