import { expect } from 'chai';
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { pickFreePort } from '../../deploy/local/stack/ports.js';
import { fetchNginx } from '../helpers/nginx.js';
import { runTool } from './tools.js';

const run = promisify(execFile);
const DEPLOY = join(REPO_DIR, 'deploy');

// Checks the files with tools that need no daemon.
describe('Dockerfile, Compose and the files that they mount', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'seckill-deploy-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const written = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };
  /** Copies deploy/ and prepares the copy, so that the checkout stays clean. */
  const prepared = async (): Promise<string> => {
    const copy = mkdtempSync(join(folder, 'deploy-'));
    cpSync(DEPLOY, copy, {
      recursive: true,
      filter: (path) => !path.endsWith('.env') && !path.includes('compose/tls'),
    });
    await run('sh', [join(copy, 'compose/prepare.sh')]);
    return copy;
  };

  it('hadolint accepts the Dockerfile and refuses a worse Dockerfile', async function () {
    expect(await runTool(this, 'hadolint', ['Dockerfile'])).to.deep.equal({ code: 0, output: '' });
    const worse = written('Dockerfile', 'FROM node\nRUN cd /app && sudo npm ci\n');
    expect((await runTool(this, 'hadolint', [worse])).output)
      .to.include('DL3006')
      .and.include('DL3004');
  });

  it('the scripts pass shellcheck', async function () {
    const scripts = ['deploy/image/assemble.sh', 'deploy/compose/prepare.sh'];
    expect(await runTool(this, 'shellcheck', scripts)).to.deep.equal({ code: 0, output: '' });
  });

  it('the Compose file fits the schema of the Compose specification', async function () {
    const check = (file: string) =>
      runTool(this, 'check-jsonschema', ['--builtin-schema', 'vendor.compose-spec', file]);
    const good = await check('deploy/compose.yaml');
    expect(good.code, good.output).to.equal(0);
    const text = readFileSync(join(DEPLOY, 'compose.yaml'), 'utf8');
    const bad = await check(written('bad.yaml', text.replace('stop_grace_period: 30s', 'stop_grace: 30s')));
    expect(bad.code, 'an unknown key').to.equal(1);
    expect(bad.output).to.include('stop_grace');
  });

  it('docker-compose accepts the file after prepare.sh, and otherwise fails and names prepare.sh', async function () {
    const copy = await prepared();
    const config = (...more: string[]) =>
      runTool(this, 'docker-compose', ['-f', join(copy, 'compose.yaml'), 'config', ...more], {
        env: { PATH: process.env.PATH, HOME: folder },
        cwd: folder,
      });
    const { code, output } = await config('--format', 'json');
    expect(code, output).to.equal(0);
    const { services, configs } = JSON.parse(output) as {
      services: Record<string, { environment?: Record<string, string> }>;
      configs: Record<string, { content: string }>;
    };
    expect(Object.keys(services)).to.include.members(['nginx', 'api-1', 'api-2', 'worker', 'keeper', 'mysql', 'redis']);
    const secret = services.worker?.environment?.ROCKETMQ_ACCESS_SECRET ?? '';
    expect(secret).to.match(/^[0-9a-f]{64}$/);
    expect(configs.broker?.content, 'the broker has the same secret').to.include(`"password":"${secret}"`);
    expect(() => JSON.parse(configs.proxy?.content ?? '') as unknown).not.to.throw();
    rmSync(join(copy, '.env'));
    const without = await config('-q');
    expect(without.code).not.to.equal(0);
    expect(without.output).to.include('run deploy/compose/prepare.sh');
  });

  it('prepare.sh creates secrets that only their owner can read, and never replaces them', async () => {
    const copy = await prepared();
    const file = join(copy, '.env');
    const before = readFileSync(file, 'utf8');
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    const values = before
      .trim()
      .split('\n')
      .map((line) => line.split('=')[1]);
    expect(new Set(values).size, 'all different').to.equal(values.length);
    await run('sh', [join(copy, 'compose/prepare.sh')]);
    expect(readFileSync(file, 'utf8')).to.equal(before);
  });

  for (const [title, site] of [
    ['deploy/nginx', 'nginx/site'],
    ['Compose', 'compose/nginx-site'],
  ] as const) {
    it(`nginx accepts the configuration of ${title} without a warning`, async function () {
      const found = await fetchNginx();
      if ('missing' in found) {
        console.log(`      · skipped: ${found.missing}`);
        return this.skip();
      }
      const copy = await prepared();
      const conf = join(copy, 'nginx');
      if (site !== 'nginx/site') {
        rmSync(join(conf, 'site'), { recursive: true });
        cpSync(join(copy, site), join(conf, 'site'), { recursive: true });
        // container names do not resolve here
        const upstreams = join(conf, 'site/upstreams.conf');
        writeFileSync(upstreams, readFileSync(upstreams, 'utf8').replace(/api-\d/g, '127.0.0.1'));
      }
      cpSync(join(copy, 'compose/tls'), join(conf, 'tls'), { recursive: true });
      listenWhereItMay(join(conf, 'site'));
      const work = join(copy, 'work');
      mkdirSync(work);
      const args = ['-t', '-e', 'stderr', '-p', `${work}/`, '-c', join(conf, 'nginx.conf')];
      // through a pipe, as in a container, because nginx cannot open a socket as /dev/stdout
      const piped = ['-c', '"$@" 2>&1 | cat', 'sh', found.path, ...args];
      const { stdout } = await run('sh', piped, { env: found.env });
      expect(stdout).to.include('test is successful').and.not.include('[warn]');
    });
  }

  it('Prometheus accepts the configuration of Compose', async function () {
    const place = join(folder, 'prometheus');
    mkdirSync(place);
    for (const file of ['compose/prometheus.yml', 'prometheus/alerts.yml', 'prometheus/objectives.yml'])
      cpSync(join(DEPLOY, file), join(place, file.replace(/.*\//, '')));
    const { code, output } = await runTool(this, 'promtool', ['check', 'config', join(place, 'prometheus.yml')]);
    expect(code, output).to.equal(0);
    expect(output).to.include('2 rule files found').and.include('SUCCESS');
  });
});

/** Moves the site to free ports, because `nginx -t` opens its ports. Drops IPv6 if the machine has none. */
function listenWhereItMay(site: string): void {
  const free = new Map<string, number>();
  for (const name of readdirSync(site)) {
    const file = join(site, name);
    const text = readFileSync(file, 'utf8');
    const lines = text.split('\n').filter((line) => !line.includes('listen [::]') || existsSync('/proc/net/if_inet6'));
    const moved = lines.join('\n').replace(/(listen (?:\S+:)?)(\d+)/g, (_whole, before: string, port: string) => {
      if (!free.has(port)) free.set(port, pickFreePort());
      return `${before}${free.get(port)}`;
    });
    writeFileSync(file, moved);
  }
}
