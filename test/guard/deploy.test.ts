import { expect } from 'chai';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { SCHEMA, type SectionName } from '../../src/core/config/schema.js';
import { kindOfAddress } from '../../src/core/doctor/reach.js';
import { CHECK_IDS } from '../../src/operate/doctor/report.js';
import { PROVIDER_CALL_MAX_MS } from '../../src/core/ports/payment-provider.js';
import { judgeVersion } from '../../src/core/doctor/versions.js';
import { routesOf } from '../../src/http/route.js';
import { ROUTES } from '../../src/programs/routes.js';
import { STOP_TIMEOUT_MS } from '../../src/programs/run-program.js';
import { version } from '../../src/process/version.js';
import { readConfig, readCopy, readDockerfile, type Stage } from '../image/dockerfile.js';
import { keysOf, READ_BY } from './helm-settings.js';

const read = (path: string): string => readFileSync(join(REPO_DIR, path), 'utf8');
const byDefault = ({ fallback }: { readonly fallback: number | undefined }): number => Number(fallback);
const PORTS = {
  buyers: byDefault(SCHEMA.http.port),
  operators: byDefault(SCHEMA.operators.port),
  worker: byDefault(SCHEMA.workerMetrics.port),
  keeper: byDefault(SCHEMA.keeperMetrics.port),
};

describe('guard: the Dockerfile', () => {
  const [build, last] = readDockerfile(read('Dockerfile')) as [Stage, Stage];
  const config = readConfig(last, { stage: 'build', folder: '/image' });

  it('copies files that exist and that .dockerignore lets through', () => {
    const copies = build.instructions.filter(({ word }) => word === 'COPY');
    const sources = copies.flatMap(({ text }) => readCopy(text).sources);
    expect(sources.filter((source) => !existsSync(join(REPO_DIR, source)))).to.deep.equal([]);
    const letThrough = [...read('.dockerignore').matchAll(/^!(.*)$/gm)].map(([, path]) => path);
    expect([...letThrough].sort()).to.deep.equal([...sources].sort());
  });

  it('sets only known settings, exposes their ports and does not run as root', () => {
    const ours = Object.keys(config.env).filter((name) => name !== 'NODE_OPTIONS');
    const known = keysOf(Object.keys(SCHEMA) as SectionName[]);
    expect(ours.filter((name) => !known.has(name))).to.deep.equal([]);
    expect(config.env.NODE_ENV).to.equal('production');
    expect([...config.ports].sort()).to.deep.equal(Object.values(PORTS).sort());
    expect(config.user).to.be.above(0);
    expect(read('deploy/image/assemble.sh'), 'the name of the user').to.include(`user=${config.user}`);
    expect(config.healthcheck.slice(0, -1), 'the program itself').to.deep.equal(config.entrypoint);
  });

  it('builds with a Node version that the package supports', () => {
    const [, major = '0'] = /^node:(\d+)\.\d+\.\d+-/.exec(build.from) ?? [];
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
    expect(Number(major)).to.be.at.least(Number(/\d+/.exec(engines.node)?.[0]));
  });
});

describe('guard: deploy/nginx', () => {
  const conf = Object.fromEntries(
    [
      'nginx.conf',
      ...['http', 'buyers', 'operators', 'problems', 'upstream', 'proxy-headers'].map((name) => `seckill/${name}.conf`),
    ].map((name) => [name.replace(/^seckill\/|\.conf$/g, ''), read(`deploy/nginx/${name}`)]),
  ) as Record<'nginx' | 'http' | 'buyers' | 'operators' | 'problems' | 'upstream', string>;
  const number = (text: string, directive: RegExp): number => Number(directive.exec(text)?.[1] ?? NaN);

  it('uses the timeouts and limits of an API', () => {
    const { http, notifications } = SCHEMA;
    expect(number(conf.http, /client_header_timeout (\d+)s;/) * 1000).to.equal(byDefault(http.headersTimeoutMs));
    expect(number(conf.http, /client_body_timeout (\d+)s;/) * 1000).to.equal(byDefault(http.requestTimeoutMs));
    const keepAliveMs = number(conf.upstream, /keepalive_timeout (\d+)s;/) * 1000;
    expect(keepAliveMs, 'nginx closes first').to.be.below(byDefault(http.keepAliveTimeoutMs));
    const silentMs = number(conf.http, /proxy_read_timeout (\d+)s;/) * 1000;
    expect(silentMs).to.be.above(60_000); // STALLED_TIMEOUT_MS of src/http/server.ts
    expect(silentMs).to.be.above(2 * byDefault(notifications.heartbeatMs));
    const shortMs = number(conf.buyers, /^proxy_read_timeout (\d+)ms;/m);
    const lastTryMs = number(conf.buyers, /^proxy_next_upstream_timeout (\d+)ms;/m);
    expect(lastTryMs, 'a request without an answer is tried once more').to.be.within(shortMs + 1, 2 * shortMs);
    const purchaseMs = [...conf.buyers.matchAll(/^ +proxy_read_timeout (\d+)ms;/gm)].map(([, ms]) => Number(ms));
    expect(purchaseMs.length, 'purchases with and without a signature').to.equal(2);
    const apiMs = byDefault(SCHEMA.batch.waitMaxMs) + byDefault(SCHEMA.redis.replyTimeoutMs);
    const retryMs = number(conf.http, /proxy_next_upstream_timeout (\d+)ms;/);
    for (const ms of purchaseMs) {
      expect(ms, 'an API answers first').to.be.at.least(apiMs);
      expect(ms + retryMs, 'nobody waits longer than 5 s').to.be.at.most(5000);
    }
    expect(2 * shortMs, 'nobody waits longer than 5 s').to.be.at.most(5000);
    const payMs = number(conf.buyers, /\/pay\$ \{[^}]*proxy_read_timeout (\d+)s;/) * 1000;
    expect(payMs, 'the provider answers first').to.be.above(PROVIDER_CALL_MAX_MS);
    const shutdownMs = number(conf.nginx, /worker_shutdown_timeout (\d+)s;/) * 1000;
    expect(shutdownMs, 'a stream ends by itself').to.be.above(byDefault(notifications.streamMaxMs));
    expect(number(conf.buyers, /limit_conn connections (\d+);/)).to.equal(byDefault(http.connectionsPerAddressMax));
    expect(number(conf.buyers, /burst=(\d+) /)).to.equal(byDefault(http.requestsPerAddressMax));
    expect(number(conf.http, /zone=buyers:\w+ rate=(\d+)r/) * 10).to.equal(byDefault(http.requestsPerAddressMax));
    const perCustomer = [/burst=(\d+) /g, /limit_conn \w+ (\d+);/g].map((amount) =>
      [...conf.buyers.matchAll(amount)].map(([, most]) => Number(most)).sort((a, b) => a - b),
    );
    for (const [one = 0, four] of perCustomer) expect(four, 'a /56 gets what four addresses get').to.equal(4 * one);
    expect(number(conf.http, /zone=customers:\w+ rate=(\d+)r/)).to.equal(
      4 * number(conf.http, /zone=buyers:\w+ rate=(\d+)r/),
    );
    expect(number(conf.http, /zone=operators:\w+ rate=(\d+)r/)).to.equal(byDefault(SCHEMA.operators.requestsPerSecond));
  });

  it('counts buyers and operators separately, so that neither group locks out the other', () => {
    const declared = [...conf.http.matchAll(/^limit_(req|conn)_zone \S+ zone=(\w+):/gm)].map(
      ([, kind, zone]) => `${kind} ${zone}`,
    );
    const used = [conf.buyers, conf.operators].map((text) =>
      [...text.matchAll(/^limit_(req|conn) (?:zone=)?(\w+)/gm)].map(([, kind, zone]) => `${kind} ${zone}`),
    );
    for (const zones of used) expect(zones.map((zone) => zone.split(' ')[0])).to.include.members(['req', 'conn']);
    expect(used.flat()).to.have.members(declared);
    expect(new Set(used.flat()).size, 'each zone is counted for one server').to.equal(used.flat().length);
  });

  it('accepts the largest body of every route', () => {
    const bytes = (text: string): number => {
      const [, amount = 'NaN', unit = ''] = /client_max_body_size (\d+)([km]);/.exec(text) ?? [];
      return Number(amount) * (unit === 'm' ? 1024 ** 2 : 1024);
    };
    const blockOf = (text: string, location: string): string | undefined =>
      new RegExp(`location ${location} \\{([\\s\\S]*?)\\n\\}`).exec(text)?.[1];
    for (const { path, body } of routesOf(ROUTES, 'buyers')) {
      const own = blockOf(conf.buyers, `= ${path}`) ?? blockOf(conf.problems, `= ${path}`);
      expect(path.startsWith('/v1/') || own !== undefined, path).to.equal(true);
      if (body === undefined) continue;
      const allowed = own?.includes('client_max_body_size') ? bytes(own) : bytes(conf.buyers);
      expect(allowed, `body of ${path}`).to.be.at.least(body.bytesMax);
    }
    for (const { path, body } of routesOf(ROUTES, 'operators'))
      if (body !== undefined) expect(bytes(conf.operators), `body of ${path}`).to.be.at.least(body.bytesMax);
  });

  it('never redirects to a host from the request', () => {
    for (const folder of ['nginx/site', 'nginx/seckill', 'compose/nginx-site'])
      for (const name of readdirSync(join(REPO_DIR, 'deploy', folder)))
        expect(read(`deploy/${folder}/${name}`), name).to.not.match(/\$(http_)?host\b/);
  });

  it('uses the default ports of the programs', () => {
    const site = read('deploy/nginx/site/upstreams.conf');
    const [buyers = '', operators = ''] = site.split('upstream seckill_operators');
    expect(buyers).to.include(`:${PORTS.buyers} `);
    expect(operators).to.include(`:${PORTS.operators} `);
  });
});

interface Service {
  readonly image?: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly stop_grace_period?: string;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly healthcheck?: { readonly test?: readonly string[] };
  readonly networks?: { readonly default: { readonly ipv4_address: string } };
}

describe('guard: deploy/compose.yaml', () => {
  const text = read('deploy/compose.yaml');
  const { services, configs } = parse(text, { merge: true }) as {
    services: Record<string, Service>;
    configs: Record<string, { content: string }>;
  };
  const ofOurImage = Object.entries(services).filter(([, { image }]) => image?.startsWith('seckill:') === true);
  /** Services that run a seckill command, unlike the copier of dashboards. */
  const ours = ofOurImage.filter(([, { command }]) => command !== undefined);

  it('gives each program the settings that it needs and no others', () => {
    expect(ours.map(([name]) => name)).to.have.members(['api-1', 'api-2', 'worker', 'keeper', 'migrate', 'topics']);
    for (const [name, { command = [], environment = {} }] of ours) {
      const keys = keysOf(READ_BY[command[0] as string] ?? []);
      expect(
        Object.keys(environment).filter((key) => !keys.has(key)),
        `${name}: not read`,
      ).to.deep.equal([]);
      const needed = [...keys.values()].filter(({ fallback, optional }) => fallback === undefined && !optional);
      expect(Object.keys(environment), `${name}: needed`).to.include.members(needed.map(({ env }) => env));
    }
  });

  it('runs programs without privileges, on a read-only root, with enough time to stop', () => {
    const hardened = [...ofOurImage, ['nginx', services.nginx as Service] as const];
    for (const [name, { read_only, cap_drop, security_opt, stop_grace_period = '' }] of hardened) {
      expect([read_only, cap_drop, security_opt], name).to.deep.equal([true, ['ALL'], ['no-new-privileges:true']]);
      expect(Number(/^(\d+)s$/.exec(stop_grace_period)?.[1]) * 1000, name).to.be.above(STOP_TIMEOUT_MS);
    }
    expect(new Set(ofOurImage.map(([, { image }]) => image))).to.deep.equal(new Set([`seckill:${version}`]));
  });

  it('lets APIs trust only nginx, makes nginx use every API, and publishes only nginx to other hosts', () => {
    const address = services.nginx?.networks?.default.ipv4_address;
    expect(address).to.match(/^172\./);
    const apis = ours.filter(([, { command }]) => command?.[0] === 'api');
    for (const [, { environment }] of apis) expect(environment?.HTTP_TRUSTED_PROXIES).to.equal(`${address}/32`);
    const upstreams = read('deploy/compose/nginx-site/upstreams.conf');
    const asked = [...upstreams.matchAll(/server (\S+) (?:.*(backup))?/g)].map(([, ...words]) => words.join(' '));
    const expected = (port: number): string[] =>
      ['', 'backup'].flatMap((as) => apis.map(([name]) => `${name}:${port} ${as}`));
    expect(asked).to.deep.equal([...expected(PORTS.buyers), ...expected(PORTS.operators)]);
    for (const [name, { ports = [] }] of Object.entries(services))
      for (const port of ports)
        expect(port, name).to.match(
          name === 'nginx' ? /^(\$\{PUBLISH_ON:-127\.0\.0\.1\}|127\.0\.0\.1):/ : /^127\.0\.0\.1:/,
        );
  });

  it('scrapes every program by name and the shop through nginx, and gives Grafana the dashboards', () => {
    const { scrape_configs } = parse(read('deploy/compose/prometheus.yml')) as {
      scrape_configs: { static_configs: { labels: { program: string }; targets: string[] }[] }[];
    };
    const port: Readonly<Record<string, number>> = { api: PORTS.operators, worker: PORTS.worker, keeper: PORTS.keeper };
    const programs = ours.filter(([, { command }]) => port[command?.[0] as string] !== undefined);
    const scraped = scrape_configs.flatMap(({ static_configs }) =>
      static_configs.flatMap(({ labels, targets }) => targets.map((target) => `${labels.program} ${target}`)),
    );
    const ofPrograms = programs.map(([name, { command: [kind = ''] = [] }]) => `${kind} ${name}:${port[kind]}`);
    expect(scraped).to.have.members([...ofPrograms, 'proxy nginx:8443']);
    // A program must listen on the name that monitoring uses.
    for (const [name, { command, environment = {} }] of programs)
      expect(environment[command?.[0] === 'api' ? 'OPERATORS_HOST' : 'METRICS_HOST'], name).to.equal(name);
    const boards = parse(read('deploy/compose/grafana/boards.yml')) as { providers: { options: { path: string } }[] };
    expect(services.grafana?.volumes).to.include(`boards:${boards.providers[0]?.options.path}:ro`);
    expect(services.boards?.volumes).to.deep.equal(['boards:/boards']);
    expect(services.boards?.entrypoint?.at(-1)).to.match(/^fs\.cpSync\('\/app\/dist\/boards', '\/boards',/);
  });

  it('accepts in docs/containers.md exactly the risks that the doctor finds in this setup', () => {
    const page = read('docs/containers.md');
    const lists = [...page.matchAll(/--accept ([\w.,-]+)/g)].map(([, list]) => list?.split(',') ?? []);
    expect(lists.length).to.be.above(1);
    expect(lists.flat().filter((id) => !CHECK_IDS.includes(id))).to.deep.equal([]);
    const [build, image] = readDockerfile(read('Dockerfile')) as [Stage, Stage];
    const tagOf = (name: string): string => services[name]?.image?.split(':')[1] ?? '';
    const node = /^node:([\d.]+)/.exec(build.from)?.[1] ?? '';
    const [redis, mysql, rocketmq] = [tagOf('redis'), tagOf('mysql'), tagOf('broker')];
    const untried = Object.entries({ node, redis, mysql, rocketmq })
      .filter(([product, version]) => judgeVersion(product as 'node', version).verdict === 'risky')
      .map(([product]) => (product === 'node' ? 'settings.node' : `${product}.version`));
    const { env } = readConfig(image, { stage: 'build', folder: '/image' });
    const listens = [env.OPERATORS_HOST, env.METRICS_HOST].map((host = '') => kindOfAddress(host));
    expect(listens, 'settings.listeners').to.deep.equal(['every', 'every']);
    const { REDIS_URL, MYSQL_TLS, ROCKETMQ_TLS } = services['api-1']?.environment ?? {};
    expect([REDIS_URL?.startsWith('redis:'), MYSQL_TLS, ROCKETMQ_TLS], 'plain text').to.deep.equal([
      true,
      undefined,
      undefined,
    ]);
    const always = ['settings.listeners', 'redis.tls', 'redis.replicas', 'mysql.tls', 'rocketmq.tls'];
    expect(lists[0]).to.have.members([...untried, ...always]);
    for (const list of lists.slice(1))
      expect(list.includes('settings.node'), 'in the chart').to.equal(untried.includes('settings.node'));
  });

  it('passes no secret as an argument, because every user of the host could read it', () => {
    const shells = Object.entries(services).flatMap(([name, { command = [], healthcheck }]) =>
      [command.at(-1), healthcheck?.test?.at(-1)].filter((one) => one !== undefined).map((one) => [name, one] as const),
    );
    expect(shells.length).to.be.above(10);
    for (const [name, script] of shells) {
      const [commandLine = ''] = script.split('<<EOF');
      // VARIABLE="$$SECRET" before a command is not an argument.
      const args = commandLine.replace(/(^|\s)[A-Z_]+="\$\$\w+"/g, '');
      expect(args, name).to.not.match(/\$\{?\$?\{?\w*(PASSWORD|SECRET|KEY)/);
    }
  });

  it('gives the broker the settings of the local stack, except addresses, sizes and threads', () => {
    const entries = (conf: string): Map<string, string> =>
      new Map([...conf.matchAll(/^(\w+)=(.*)$/gm)].map(([, key, value]) => [key as string, value as string]));
    const local = entries(read('deploy/local/templates/broker.conf'));
    const compose = entries(configs.broker?.content ?? '');
    const elsewhere = [
      'brokerIP1',
      'bindAddress',
      'listenPort',
      'namesrvAddr',
      'storePathRootDir',
      'storePathCommitLog',
    ];
    const ofSmallMachines =
      /ThreadPoolNums$|^timer(Get|Put)MessageThreadNum$|^messageDelayLevel$|^mappedFileSize|^max(HashSlot|Index)Num$|^reviveQueueNum$/;
    const notThere = ['bindAddress', 'metricsExporterType', 'metricsPromExporterPort'];
    const secret = (value: string): string =>
      value
        .replace(/\$\{(accessSecret|ROCKETMQ_ACCESS_SECRET:[^}]*)\}/g, 'SECRET')
        .replace(/\$\{accessKey\}/g, 'seckill')
        .replace('${flushDiskType}', 'ASYNC_FLUSH');
    for (const [key, value] of local) {
      if (notThere.includes(key) || ofSmallMachines.test(key)) continue;
      expect(compose.has(key), key).to.equal(true);
      if (!elsewhere.includes(key)) expect(secret(compose.get(key) as string), key).to.equal(secret(value));
    }
    expect([...compose.keys()].filter((key) => !local.has(key))).to.deep.equal([]);
    const json = (content: string): Record<string, unknown> =>
      JSON.parse(
        secret(content)
          .replace('${timing}', '')
          .replace('${tls}', '')
          .replace(/: \$\{\w+\}/g, ': 0'),
      ) as Record<string, unknown>;
    const proxy = json(configs.proxy?.content ?? '');
    const localProxy = json(read('deploy/local/templates/rmq-proxy.json.tmpl'));
    for (const [key, value] of Object.entries(localProxy)) {
      if (/Port$|^namesrvAddr$|PoolNums$/.test(key)) continue;
      expect(proxy[key], key).to.deep.equal(value);
    }
  });
});

describe('guard: the Helm chart', () => {
  const chart = (name: string): string => read(`deploy/helm/seckill/${name}`);

  it('has the version of the package', () => {
    expect(parse(chart('Chart.yaml'))).to.include({ version, appVersion: version });
  });
});
