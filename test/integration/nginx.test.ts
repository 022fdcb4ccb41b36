import { expect } from 'chai';
import { Agent, createServer, request, type IncomingHttpHeaders, type Server } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { connect as connectTls, type SecureVersion } from 'node:tls';
import { pickFreePort } from '../../deploy/local/stack/ports.js';
import { createTokenSigner } from '../../src/http/token.js';
import { roomKeys } from '../../src/redis/keys.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import { sumMetric, type Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { pause, until } from '../chaos/harness/wait.js';
import { EventStreamClient } from '../helpers/event-stream-client.js';
import { expectInvariants } from '../helpers/invariants.js';
import { fetchNginx, Nginx, type FoundNginx, type LoggedAnswer, type Upstream } from '../helpers/nginx.js';
import { useSystem } from '../helpers/system.js';

/** Enough requests to exceed the limit, although it restores 30 each second. */
const BURST = 3000;
const COME_BACK_PER_SECOND = 30;
const FLOOD_MAX = 20_000;
const FLOOD_PARALLEL = 32;
/** `HTTP_REQUESTS_PER_ADDRESS_MAX` of an API that counts. */
const COUNTED_MAX = 5;
const API_ENV = { HTTP_TRUSTED_PROXIES: '127.0.0.1/32', EVENTS_HEARTBEAT_MS: '300' };
/** Maximum wait for an answer, except for a long poll, a stream and the bank. */
const ANSWER_MAX_MS = 5000;
/** Buyers that a waiting room admits per second. */
const ROOM_RATE = 40;
const LOOK_EVERY_MS = 200;
/** Patient, because a busy machine starts an API during the load. */
const PATIENCE_MS = 30_000;
/** An answer that takes longer is being held back. */
const QUIET_MS = 3000;

describe('deploy/nginx in front of two APIs', () => {
  let found: FoundNginx;
  let apis: Program[];
  /** An API that counts requests by address, even on loopback. */
  let counting: Program;
  let worker: Program;
  let nginx: Nginx;
  let inFrontOfCounting: Nginx;
  const started: { stop(): unknown }[] = [];

  const system = useSystem(async ({ programs }) => {
    const counts = { HTTP_REQUESTS_PER_ADDRESS_MAX: String(COUNTED_MAX), HTTP_UNLIMITED_NETWORKS: '192.0.2.0/24' };
    [worker, , counting, ...apis] = await Promise.all([
      programs.start('worker'),
      programs.start('keeper', { env: { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100' } }),
      programs.start('api', { env: { ...API_ENV, ...counts } }),
      programs.start('api', { env: API_ENV }),
      programs.start('api', { env: API_ENV }),
    ]);
  });
  before(async function () {
    const nginxOrNot = await fetchNginx();
    if ('missing' in nginxOrNot) {
      console.log(`      · skipped: ${nginxOrNot.missing}`);
      return this.skip();
    }
    found = nginxOrNot;
    // because all load comes from one address
    nginx = await Nginx.start(found, { upstreams: apis.map(upstreamOf), unlimitedNetworks: '127.0.0.1/32 1;\n' });
    inFrontOfCounting = await Nginx.start(found, {
      upstreams: [upstreamOf(counting)],
      realIp: 'set_real_ip_from 127.0.0.1;\nreal_ip_header X-Forwarded-For;\n',
      unlimitedNetworks: '127.0.0.43/32 1;\n',
      perSecond: COME_BACK_PER_SECOND,
    });
    started.push(nginx, inFrontOfCounting);
  });
  afterEach(function () {
    for (const program of [worker, ...(apis ?? [])]) program?.signal('SIGCONT');
    if (this.currentTest?.state === 'failed') console.error(nginx?.log.split('\n').slice(-40).join('\n'));
  });
  after(async () => {
    for (const one of started) await one.stop();
  });

  const buyersOf = (saleId: string, url = nginx.url): Buyers =>
    new Buyers(saleId, system.stack.env.JWT_SECRET, () => [url]);
  /** Publishes the rules of waiting rooms, and waits until these APIs follow them. */
  const publishQueue = async (queue: object, among: readonly Program[]): Promise<void> => {
    const url = `${(apis[0] as Program).operatorsUrl}/admin/v1/rules`;
    const token = createTokenSigner(system.stack.env.JWT_SECRET)({ userId: 'root', roles: ['admin'], ttlMs: 600_000 });
    const { version } = (await ask(url, { token })).json;
    const answer = await ask(url, { method: 'PUT', token, body: { version, rules: { queue } } });
    expect(answer.status, answer.text).to.equal(200);
    await until('the rules are in force', async () => {
      const versions = await Promise.all(among.map((api) => sumMetric([api], 'seckill_admission_rules_version')));
      return versions.every((one) => one === answer.json.version);
    });
  };
  /** Returns how many requests about waiting rooms each API has answered. */
  const answersOfRooms = (among: readonly Program[]): Promise<number[]> =>
    Promise.all(among.map((api) => sumMetric([api], 'seckill_http_answers_total{route="queue"}')));
  const unknownOf = ({ opLog }: Buyers): string[] =>
    [...opLog.entries].filter(([, outcome]) => outcome !== 'ok').map(([key, outcome]) => `${key} ${outcome}`);

  it('tells an API the real client address, whatever the client sends in X-Forwarded-For', async () => {
    const { saleId } = await openSale(system.stack);
    const url = `${inFrontOfCounting.url}/v1/sales/${saleId}?fresh=1`; // not from the cache
    const asked = (from: string, forwarded: string): Promise<Received> =>
      get(url, { from, headers: { 'X-Forwarded-For': forwarded } });
    for (let i = 0; i < COUNTED_MAX; i++) expect((await asked('127.0.0.21', `198.51.100.${i}`)).status).to.equal(200);
    const refused = await asked('127.0.0.21', '198.51.100.99');
    expect([refused.status, refused.json.code]).to.deep.equal([429, 'rate_limited']);
    expect(refused.headers, 'it was the api that refused').to.have.property('trace-id');
    expect((await asked('127.0.0.22', '198.51.100.99')).status, 'another client').to.equal(200);
  });

  it('limits the requests of an address or an IPv6 network, except of your own networks', async () => {
    // the API refuses these requests without a look-up, so the test can send many
    const path = `${inFrontOfCounting.url}/v1/me/orders`;
    const isRefused = ({ status, headers }: Received): boolean => status === 429 && headers['trace-id'] === undefined;
    const flood = async (from: string, forwarded?: (nth: number) => string): Promise<Received | null> => {
      const agent = new Agent({ keepAlive: true, maxSockets: FLOOD_PARALLEL, localAddress: from });
      let [sent, refused]: [number, Received | null] = [0, null];
      const lane = async (): Promise<void> => {
        while (refused === null && sent < (from === '127.0.0.43' ? BURST + 1500 : FLOOD_MAX)) {
          const nth = sent++;
          const forged = forwarded === undefined ? {} : { headers: { 'X-Forwarded-For': forwarded(nth) } };
          const answer = await get(path, { agent, ...forged });
          if (isRefused(answer)) refused = answer;
        }
      };
      await Promise.all(Array.from({ length: FLOOD_PARALLEL }, lane));
      agent.destroy();
      expect(sent, 'requests of one address').to.be.above(BURST);
      return refused;
    };
    const refused = await flood('127.0.0.41');
    expect(refused?.json).to.include({ code: 'rate_limited', retryAfterMs: 1000 });
    expect(refused?.headers).to.include({ 'retry-after': '1', 'content-type': 'application/problem+json' });
    expect(isRefused(await get(path, { from: '127.0.0.42' })), 'another address').to.equal(false);

    const ofNetwork = (nth: number): string => `2001:db8:1:2:${(nth % 0xffff).toString(16)}::7`;
    expect(await flood('127.0.0.1', ofNetwork), 'addresses of one IPv6 network').not.to.equal(null);
    const neighbour = await get(path, { headers: { 'X-Forwarded-For': '2001:db8:1:3::7' } });
    expect(isRefused(neighbour), 'another network').to.equal(false);

    expect(await flood('127.0.0.43'), 'a network of our own').to.equal(null);
  });

  it('admits at the set rate and keeps every place while an API is killed and another is added', async () => {
    const own: Program[] = [];
    const start = async (): Promise<Program> => {
      const api = await system.programs.start('api', { env: API_ENV });
      own.push(api);
      return api;
    };
    const [dying, staying] = (await Promise.all([start(), start()])) as [Program, Program];
    const proxy = await Nginx.start(found, {
      upstreams: [dying, staying].map(upstreamOf),
      unlimitedNetworks: '127.0.0.1/32 1;\n',
    });
    started.push(proxy);
    const { saleId } = await openSale(system.stack);
    const publishRate = (admitPerSecond: number): Promise<void> =>
      publishQueue({ mode: 'on', sales: [saleId], admitPerSecond }, [dying, staying]);
    await publishRate(0);
    const room = `${proxy.url}/v1/sales/${saleId}/queue`;
    const buyers = buyersOf(saleId);
    const tokenOf = (userId: string): string => buyers.token(userId);
    const closing = { headers: { Connection: 'close' } }; // a reload of nginx closes idle connections
    /** Repeats a request like a client, because a busy api may take longer than nginx waits. */
    const answered = async (...[url, options]: Parameters<typeof ask>): ReturnType<typeof ask> => {
      for (let tries = 1; ; tries++) {
        const answer = await ask(url, { ...closing, ...options });
        if (answer.status !== 503 || tries === 10) return answer;
        await pause(200 * tries);
      }
    };
    let joined = 0;
    const join = async (count: number): Promise<void> => {
      const lane = async (end: number): Promise<void> => {
        while (joined < end) {
          const answer = await answered(room, { method: 'POST', token: tokenOf(`b${joined++}`) });
          expect(answer.status, answer.text).to.be.oneOf([200, 202]);
        }
      };
      const end = joined + count;
      await Promise.all(Array.from({ length: 16 }, () => lane(end)));
    };

    /** The line, and when it was last moved, on the clock of Redis. */
    interface Look {
      readonly admitted: number;
      readonly waiting: number;
      readonly atMs: number;
      readonly nowMs: number;
    }
    const { redis } = system.stack.redis;
    const [lineKey, placesKey] = roomKeys(saleId);
    const look = async (): Promise<Look> => {
      const [[, text], [, time]] = (await redis.multi().get(lineKey).time().exec()) as [
        [null, string],
        [null, string[]],
      ];
      const line = JSON.parse(text) as Record<'admitted' | 'joined', number[]> & { atMs: number };
      const [seconds, micros] = time.map(Number) as [number, number];
      const [, , admitted] = line.admitted as [number, number, number];
      const [, , last] = line.joined as [number, number, number];
      return { admitted, waiting: last - admitted, atMs: line.atMs, nowMs: seconds * 1000 + micros / 1000 };
    };

    const looks: Look[] = [];
    let ended = false;
    const watcher = async (userId: string): Promise<void> => {
      const token = tokenOf(userId);
      let { json } = await answered(room, { method: 'POST', token });
      while (json.status === 'waiting' && !ended) {
        await pause(100);
        const next = await answered(`${room}/${String(json.ticket)}`, { token });
        expect(next.status, next.text).to.be.oneOf([200, 202]);
        if (next.json.status === 'waiting') expect(next.json.position).to.be.at.most(Number(json.position));
        ({ json } = next);
      }
    };
    /** Watches the line for four seconds and until the step is done, with enough waiting buyers. */
    const observe = async <T>(step: Promise<T>): Promise<T> => {
      const first = await look();
      let isDone = false;
      step.finally(() => (isDone = true)).catch(() => undefined); // awaited below
      const joining: Promise<void>[] = [];
      let isJoining = false;
      for (let now = first; !isDone || now.atMs - first.atMs < 4000; now = await look()) {
        looks.push(now);
        if (now.waiting < 500 && !isJoining) {
          isJoining = true;
          joining.push(join(300).finally(() => (isJoining = false)));
          joining.at(-1)?.catch(() => undefined); // awaited below
        }
        await pause(LOOK_EVERY_MS);
      }
      await Promise.all(joining);
      return step;
    };
    try {
      await join(1000);
      const watching = Promise.all(
        Array.from({ length: 12 }, async (_, nth) => {
          await pause(nth * 300);
          await watcher(`watcher-${nth}`);
        }),
      );
      watching.catch(() => undefined); // awaited below
      await publishRate(ROOM_RATE);
      await observe(Promise.resolve());
      await observe(dying.crash());
      const added = await observe(start());
      await observe(proxy.serve([staying, added].map(upstreamOf)));
      ended = true;
      await watching;
      expect((await answersOfRooms([added]))[0], 'the added api was used').to.be.above(10);
      let judged = 0;
      for (const [nth, from] of looks.entries()) {
        const window = looks.slice(nth, looks.findIndex(({ atMs }) => atMs - from.atMs >= 2000) + 1);
        // A line saves up only one second of turns, and may stand still for longer on a busy machine.
        const isSteady = window.every(
          ({ atMs, waiting }, at) => waiting > 0 && (at === 0 || atMs - (window[at - 1] as Look).atMs < 900),
        );
        const to = window.at(-1);
        if (to === undefined || !isSteady) continue;
        judged++;
        const due = ((to.atMs - from.atMs) * ROOM_RATE) / 1000;
        expect((to.admitted - from.admitted) / due, `window ${nth} of ${looks.length}`).to.be.within(0.97, 1.03);
      }
      expect(judged, `windows of ${looks.length} looks`).to.be.at.least(5);
      const places = Object.values(await redis.hgetall(placesKey)).map((place) => place.split(' ')[2]);
      expect(places.length).to.be.at.least(1000);
      expect(new Set(places).size, 'one number each').to.equal(places.length);
    } finally {
      ended = true;
      await publishQueue({ mode: 'off' }, apis);
      await Promise.all(own.map((program) => program.stop())); // so that the machine has time for the next test
    }
  });

  it('holds a long poll until the order exists', async () => {
    const { saleId } = await openSale(system.stack);
    const buyers = buyersOf(saleId);
    worker.signal('SIGSTOP');
    expect((await buyers.buy('ann'))?.status).to.equal(202);
    let answered = false;
    const poll = buyers.status('ann', 'k1', 25).finally(() => (answered = true));
    await pause(QUIET_MS);
    expect(answered, 'it waits').to.equal(false);
    worker.signal('SIGCONT');
    expect((await poll).json.status).to.equal('ordered');
    expect((await buyers.status('ann', 'k1', 1)).json.status).to.equal('ordered');
  });

  it('passes on events of a stream at once, over HTTP/1.1 and over HTTP/2 with TLS', async () => {
    const { saleId } = await openSale(system.stack);
    const buyers = buyersOf(saleId);
    worker.signal('SIGSTOP');
    expect((await buyers.buy('ann'))?.status).to.equal(202);
    const path = `/v1/sales/${saleId}/purchases/k1/events`;
    const plain = await EventStreamClient.open(nginx.url + path, { token: buyers.token('ann') });
    await plain.received('pending');
    await until('comments come too', () => plain.comments >= 3);
    const session = connectHttp2(nginx.tlsUrl, { ca: nginx.certificate });
    let text = '';
    const stream = session.request({ ':path': path, authorization: `Bearer ${buyers.token('ann')}` });
    stream.setEncoding('utf8').on('data', (part: string) => (text += part));
    await until('the event over TLS', () => text.includes('event: pending'));
    worker.signal('SIGCONT');
    await plain.received('ordered');
    await until('its end over TLS', () => text.includes('event: ordered'));
    plain.close();
    stream.close();
    session.close();
  });

  it('refuses no request while the APIs restart one after the other under load [T13]', async () => {
    const patient = await Nginx.start(found, {
      upstreams: apis.map(upstreamOf),
      unlimitedNetworks: '127.0.0.1/32 1;\n',
      purchaseWaitMs: PATIENCE_MS,
    });
    started.push(patient);
    const { saleId } = await openSale(system.stack, { stock: 100_000 });
    const buyers = buyersOf(saleId, patient.url);
    const load = await buyers.startLoadUntil({ parallel: 32, pauseMs: 10, tries: 1, timeoutMs: PATIENCE_MS }, 300);
    // as documented: each API stops as soon as the previous API is ready again
    for (const [index, leaving] of apis.entries()) {
      const { port, operatorsPort } = upstreamOf(leaving);
      expect(await leaving.stop(), 'it drains').to.deep.equal({ code: 0, signal: null });
      const env = { ...API_ENV, PORT: String(port), OPERATORS_PORT: String(operatorsPort) };
      const back = await system.programs.start('api', { env });
      apis[index] = back;
      await until('it is ready', async () => (await ask(`${back.url}/readyz`)).status === 200);
    }
    const sold = (api: Program): Promise<number> => sumMetric([api], 'seckill_http_answers_total{route="purchase"}');
    for (const api of apis) await until('each restarted API sells', async () => (await sold(api)) > 100);
    await load.stop();
    expect(unknownOf(buyers), 'purchases without a good answer').to.deep.equal([]);
    await expectInvariants(system.stack, saleId, buyers.opLog);
  });

  it('answers every request within 5 s if an API hangs, and then asks only the other API [T13]', async () => {
    const { saleId } = await openSale(system.stack, { stock: 100_000 });
    const buyers = buyersOf(saleId);
    const lanes = 16;
    const load = await buyers.startLoadUntil(
      { parallel: lanes, pauseMs: 10, tries: 10, timeoutMs: ANSWER_MAX_MS },
      100,
    );
    apis[0]?.signal('SIGSTOP');
    const timeoutMs = ANSWER_MAX_MS;
    const reads = Array.from({ length: 8 }, () => ask(`${nginx.url}/v1/sales/${saleId}?fresh=1`, { timeoutMs }));
    for (const { status } of await Promise.all(reads)) expect(status, 'a read goes to the other API').to.equal(200);
    await buyers.untilAccepted(1000, 'the other API sells');
    await load.stop();
    const { answers } = buyers.opLog;
    expect(answers.get('nothing'), 'purchases without an answer within 5 s').to.equal(undefined);
    // each lane may lose a purchase to the hanging API, which nginx tries again every five seconds
    expect(answers.get('503 outcome_unknown')).to.be.within(1, 2 * lanes);
    apis[0]?.signal('SIGCONT');
    expect(unknownOf(buyers), 'purchases that no retry answered').to.deep.equal([]);
    await expectInvariants(system.stack, saleId, buyers.opLog);
  });

  it('breaks no purchase and no open stream when it reloads under load', async () => {
    const { saleId } = await openSale(system.stack, { stock: 100_000 });
    const buyers = buyersOf(saleId);
    // an exiting worker closes idle connections, and a request that is lost then is repeated with its key
    const load = await buyers.startLoadUntil({ parallel: 32, pauseMs: 10, tries: 3 }, 300);
    worker.signal('SIGSTOP');
    expect((await buyers.buy('ann'))?.status).to.equal(202);
    const stream = await EventStreamClient.open(`${nginx.url}/v1/sales/${saleId}/purchases/k1/events`, {
      token: buyers.token('ann'),
    });
    await stream.received('pending');
    const before = nginx.workers;
    for (let i = 0; i < 3; i++) {
      await nginx.reload();
      await buyers.untilAccepted(200, 'the new workers sell');
    }
    const kept = nginx.workers.filter((pid) => before.includes(pid));
    expect(kept.length, 'the worker that has the stream waits for its end').to.be.at.least(1);
    worker.signal('SIGCONT');
    await stream.received('ordered');
    await load.stop();
    stream.close();
    await until('the old workers have gone', () => !nginx.workers.some((pid) => before.includes(pid)));
    expect(unknownOf(buyers), 'purchases without a good answer').to.deep.equal([]);
    await expectInvariants(system.stack, saleId, buyers.opLog);
  });

  it('caches the page, its files and the sale, whatever their query string', async () => {
    const { saleId } = await openSale(system.stack);
    const pagesOf = (): Promise<number> => sumMetric(apis, 'seckill_http_answers_total{route="page"}');
    const asset = await assetOf(nginx, saleId);
    const before = await pagesOf();
    for (let i = 0; i < 10; i++) {
      const { status, headers } = await get(`${nginx.url}${asset}?n=${i}`, {
        headers: { 'Accept-Encoding': 'gzip, br' },
      });
      expect([status, headers['content-encoding']]).to.deep.equal([200, 'gzip']);
      expect((await get(`${nginx.url}${asset}?n=${i}`)).headers).not.to.have.property('content-encoding');
      expect((await get(`${nginx.url}/s/${saleId}?lang=en&n=${i}`)).status).to.equal(200);
    }
    expect((await pagesOf()) - before, 'a file as gzip, and as it is; the page was there').to.be.within(1, 2);
    const { headers } = await get(`${nginx.url}${asset}`);
    expect(headers['cache-control']).to.include('immutable');
    expect((await get(`${nginx.url}${asset}`, { headers: { 'If-None-Match': String(headers.etag) } })).status).to.equal(
      304,
    );

    const timeOf = async (query = ''): Promise<unknown> =>
      (await get(`${nginx.url}/v1/sales/${saleId}${query}`)).json.serverTime;
    const shared = await Promise.all(Array.from({ length: 100 }, (_, i) => timeOf(`?n=${i}`)));
    expect(new Set(shared).size, 'all who read in the same second get the same answer').to.be.below(10);
    const times: unknown[] = [];
    for (let i = 0; i < 3; i++) {
      times.push(await timeOf('?fresh=1'));
      await pause(5); // the time is precise to the millisecond
    }
    expect(new Set(times).size, 'each fresh answer has its own time').to.equal(3);
  });

  it('fetches a file from the other API if the first runs a release without that file', async () => {
    const { saleId } = await openSale(system.stack);
    let lacked = 0;
    const other = createServer((_req, res) => {
      lacked++;
      res.writeHead(404).end('not of this release');
    });
    const otherPort = await listen(other);
    const mixed = await Nginx.start(found, {
      upstreams: [{ port: otherPort, operatorsPort: otherPort }, upstreamOf(apis[1] as Program)],
    });
    started.push(mixed, { stop: () => other.close() });
    const { text } = await get(`${mixed.url}/s/${saleId}`);
    const assets = [...text.matchAll(/"(\/s\/assets\/[^"]+)"/g)].map(([, path]) => path as string);
    expect(assets.length, 'script and style, so that each api is asked first for one of them').to.be.at.least(2);
    for (const asset of assets) expect((await get(`${mixed.url}${asset}`)).status, asset).to.equal(200);
    expect(lacked, 'the api without them was asked').to.be.at.least(1);
  });

  it('sends each lane of buyers to one API, and to another API while that API is down', async () => {
    const two = apis.slice(0, 2);
    const closed = pickFreePort();
    const down = { port: closed, operatorsPort: closed };
    const [byLane, withOneDown] = await Promise.all(
      [two.map(upstreamOf), [upstreamOf(two[0] as Program), down]].map((upstreams) =>
        Nginx.start(found, { upstreams, unlimitedNetworks: '127.0.0.1/32 1;\n', byLane: true }),
      ),
    );
    started.push(byLane as Nginx, withOneDown as Nginx);
    const answersOf = (): Promise<number[]> =>
      Promise.all(two.map((api) => sumMetric([api], 'seckill_http_answers_total{route="order"}')));
    const askAs = async ({ url }: Nginx, lane: number): Promise<void> => {
      const answer = await get(`${url}/v1/me/orders`, { headers: { 'Seckill-Lane': String(lane) } });
      expect([answer.status, answer.json.code], `lane ${lane}`).to.deep.equal([401, 'unauthorized']);
    };
    const usedApis = new Set<number>();
    for (let lane = 0; lane < 12; lane++) {
      const before = await answersOf();
      for (let i = 0; i < 5; i++) await askAs(byLane as Nginx, lane);
      const grown = (await answersOf()).map((count, api) => count - (before[api] ?? 0));
      expect([...grown].sort(), `lane ${lane} has one api`).to.deep.equal([0, 5]);
      usedApis.add(grown.indexOf(5));
      await askAs(withOneDown as Nginx, lane);
    }
    expect(usedApis.size, 'lanes are spread over the apis').to.equal(2);
  });

  it('serves console, streams and admin routes only to allowed networks, on a separate server', async () => {
    const sign = createTokenSigner(system.stack.env.JWT_SECRET);
    const token = sign({ userId: 'olga', roles: ['admin'], ttlMs: 600_000 });
    const { operatorsUrl } = nginx;
    const me = await ask(`${operatorsUrl}/admin/v1/me`, { token });
    expect([me.status, me.json.userId]).to.deep.equal([200, 'olga']);
    expect((await ask(`${operatorsUrl}/console`)).headers['content-type']).to.include('text/html');
    const live = await EventStreamClient.open(`${operatorsUrl}/admin/v1/live`, { token });
    await live.received('snapshot');
    live.close();
    expect((await ask(`${operatorsUrl}/readyz`)).json).to.include.keys('dependencies');
    expect((await ask(`${operatorsUrl}/metrics`, { token })).json).to.include({ code: 'route_not_found' });
    expect(
      (await get(`${operatorsUrl}/console`, { from: '127.0.0.51' })).status,
      'an address it does not know',
    ).to.equal(403);
    for (const path of ['/admin/v1/me', '/console', '/metrics', '/openapi/buyers.json', '/debug/heap']) {
      const { status, json } = await ask(nginx.url + path, { token });
      expect([status, json.code], `${path} on the server of buyers`).to.deep.equal([404, 'route_not_found']);
    }
  });

  it('serves TLS 1.2 and later with HTTP/2, and redirects plain HTTP to it', async () => {
    const { saleId } = await openSale(system.stack);
    const { port } = new URL(nginx.tlsUrl);
    const handshake = (version: SecureVersion): Promise<string> =>
      new Promise((resolve) => {
        const options = { port: Number(port), host: '127.0.0.1', ca: nginx.certificate, ALPNProtocols: ['h2'] };
        // Node refuses TLS 1.1 itself, except at security level 0.
        const ciphers = 'DEFAULT@SECLEVEL=0';
        const socket = connectTls({ ...options, minVersion: version, maxVersion: version, ciphers }, () => {
          resolve(`${socket.getProtocol()} ${socket.alpnProtocol}`);
          socket.destroy();
        });
        socket.on('error', (error: NodeJS.ErrnoException) => resolve(`refused: ${error.code}`));
      });
    expect(await handshake('TLSv1.3')).to.equal('TLSv1.3 h2');
    expect(await handshake('TLSv1.2')).to.equal('TLSv1.2 h2');
    expect(await handshake('TLSv1.1')).to.match(/^refused: /);

    const session = connectHttp2(nginx.tlsUrl, { ca: nginx.certificate });
    const answer = await new Promise<IncomingHttpHeaders & { ':status'?: number }>((resolve) => {
      session
        .request({ ':path': `/v1/sales/${saleId}` })
        .once('response', resolve)
        .resume();
    });
    session.close();
    expect(answer[':status']).to.equal(200);
    expect(answer['strict-transport-security']).to.match(/^max-age=\d{7}/);
    const led = await get(`${nginx.redirectUrl}/s/${saleId}?lang=en`, { headers: { host: 'evil.example' } });
    expect([led.status, led.headers.location]).to.deep.equal([301, `https://shop.example/s/${saleId}?lang=en`]);
  });

  it('uses the error format of the API for its own refusals and when no API answers', async () => {
    const { saleId } = await openSale(system.stack);
    const asset = await assetOf(nginx, saleId);
    const buyers = buyersOf(saleId);
    const url = `${nginx.url}/v1/sales/${saleId}/purchases`;
    const purchase = { method: 'POST', token: buyers.token('ann'), headers: { 'Idempotency-Key': 'k1' } } as const;
    const large = await ask(url, { ...purchase, body: { quantity: 1, metadata: { note: 'x'.repeat(5000) } } });
    expect([large.status, large.json.code, large.headers['trace-id']]).to.deep.equal([
      413,
      'payload_too_large',
      undefined,
    ]);
    expect((await ask(`${nginx.url}/readyz`)).json).to.deep.equal({ ready: true });
    const scraped = await ask(`${nginx.url}/readyz`, { headers: { Accept: 'text/plain;version=0.0.4,*/*;q=0.1' } });
    expect(scraped.text, 'Prometheus can read the page').to.equal('# ready\n');

    await Promise.all(apis.map((api) => api.stop()));
    const lost = await ask(url, { ...purchase, body: { quantity: 1 } });
    expect([lost.status, lost.json.code, lost.json.retryable]).to.deep.equal([503, 'outcome_unknown', true]);
    expect(lost.headers['retry-after']).to.equal('1');
    expect((await ask(`${nginx.url}/v1/sales/${saleId}`)).json).to.include({ code: 'unavailable', retryable: true });
    expect((await ask(`${nginx.url}/readyz`)).status, 'no api is ready').to.equal(503);
    expect((await ask(`${nginx.url}/healthz`)).json, 'nginx is alive').to.deep.equal({ status: 'alive' });
    expect((await get(`${nginx.url}${asset}`)).status, 'a file of the page is still there').to.equal(200);

    const OTHERS = 300;
    for (let nth = 0; nth < OTHERS; nth++) await ask(`${nginx.url}/nothing-here`);
    expect((await ask(`${nginx.url}/v1/sales/${saleId}?last`)).status).to.equal(503);
    const isLost = ({ path, status }: LoggedAnswer): boolean => path === `/v1/sales/${saleId}` && status === 503;
    await until('the access log has both answers with 503', () => nginx.accessLog.filter(isLost).length === 2);
    const others = nginx.accessLog.filter(({ path }) => path === '/nothing-here').length;
    expect(others, 'about one in a hundred').to.be.below(OTHERS / 10);
  });
});

const upstreamOf = ({ url, operatorsUrl }: Program): Upstream => ({
  port: Number(new URL(url).port),
  operatorsPort: Number(new URL(operatorsUrl).port),
});

async function assetOf({ url }: Nginx, saleId: string): Promise<string> {
  const { status, text } = await get(`${url}/s/${saleId}`);
  expect(status, 'the page: npm run build:web').to.equal(200);
  const [, asset = ''] = /"(\/s\/assets\/[^"]+\.js)"/.exec(text) ?? [];
  return asset;
}

const listen = (server: Server): Promise<number> =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });

interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: Readonly<Record<string, unknown>>;
}

interface Sent {
  /** The local address to connect from. */
  readonly from?: string;
  readonly agent?: Agent;
  readonly headers?: Readonly<Record<string, string>>;
}

function get(url: string, { from, agent, headers = {} }: Sent = {}): Promise<Received> {
  return new Promise((resolve, reject) => {
    const address = from === undefined ? {} : { localAddress: from };
    const sent = request(url, { agent: agent ?? false, headers, ...address }, (response) => {
      let text = '';
      response.setEncoding('latin1').on('data', (part: string) => (text += part));
      response.on('error', reject);
      response.on('end', () => {
        const isJson = /json/.test(response.headers['content-type'] ?? '') && !response.headers['content-encoding'];
        const json = isJson ? (JSON.parse(text) as Record<string, unknown>) : {};
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json });
      });
    });
    sent.on('error', reject).end();
  });
}
