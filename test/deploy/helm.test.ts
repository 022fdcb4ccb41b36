import { expect } from 'chai';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { PROGRAM_SECTIONS, SCHEMA, settingsOf, type SectionName } from '../../src/core/config/schema.js';
import { fileVariable, type Key } from '../../src/core/config/key.js';
import { STOP_TIMEOUT_MS } from '../../src/programs/run-program.js';
import { runTool, type ToolEnd } from './tools.js';

const CHART = join(REPO_DIR, 'deploy/helm/seckill');
/** The oldest that the chart takes, and the newest that the validator knows. */
const KUBERNETES = ['1.30', '1.33', '1.37'];
/** Without a cluster to ask, helm has to be told what it runs on. */
const TEMPLATE = ['template', 'shop', CHART, '--kube-version', '1.37.0'];

interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly secretKeyRef: { readonly name: string; readonly key: string; readonly optional: boolean };
  };
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}
interface Mount {
  readonly name: string;
  readonly mountPath: string;
}
interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly image: string;
  readonly env: readonly EnvVar[];
  readonly volumeMounts?: readonly Mount[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
}
interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly { readonly name: string }[];
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext: Readonly<Record<string, unknown>>;
}
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: Readonly<Record<string, unknown>> & { readonly template: { readonly spec: PodSpec } };
}

describe('the Helm chart', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'seckill-helm-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const valuesFile = (name: 'small' | 'full'): string => join(CHART, 'ci', `${name}-values.yaml`);
  const template = (test: Mocha.Context, values: 'small' | 'full', ...more: string[]): Promise<ToolEnd> =>
    runTool(test, 'helm', [...TEMPLATE, '-f', valuesFile(values), ...more]);
  const rendered = async (test: Mocha.Context, values: 'small' | 'full', ...more: string[]): Promise<Manifest[]> => {
    const { code, output } = await template(test, values, ...more);
    expect(code, output).to.equal(0);
    return parseAllDocuments(output)
      .map((document) => document.toJS() as Manifest | null)
      .filter((manifest) => manifest !== null);
  };
  const of = (manifests: readonly Manifest[], kind: string, name?: string): Manifest => {
    const one = manifests.find(
      (manifest) => manifest.kind === kind && (name === undefined || manifest.metadata.name === name),
    );
    if (one === undefined) throw new Error(`no ${kind} ${name ?? ''}`);
    return one;
  };

  for (const values of ['small', 'full'] as const) {
    it(`helm lint finds nothing with ${values} values`, async function () {
      const { code, output } = await runTool(this, 'helm', ['lint', '--strict', CHART, '-f', valuesFile(values)]);
      expect(code, output).to.equal(0);
      expect(output).to.include('0 chart(s) failed');
    });

    it(`every manifest of ${values} values is one that Kubernetes ${KUBERNETES.join(', ')} takes`, async function () {
      const manifests = await rendered(this, values);
      // what the Prometheus operator adds to Kubernetes is in no schema of it; see below
      const known = manifests.filter(({ kind }) => kind !== 'PodMonitor');
      expect(known.length).to.be.above(10);
      const file = join(folder, `${values}.yaml`);
      // the validator reads YAML 1.1, where a bare `on` is no text
      writeFileSync(file, known.map((manifest) => stringify(manifest, { version: '1.1' })).join('---\n'));
      for (const version of KUBERNETES) {
        const { code, output } = await runTool(this, 'kubernetes-validate', ['--strict', '-k', version, file]);
        expect(code, `${version}: ${output}`).to.equal(0);
      }
      const wrong = stringify({ ...known[0], spec: { ...known[0]?.spec, replicaz: 2 } });
      writeFileSync(file, wrong);
      expect(
        (await runTool(this, 'kubernetes-validate', ['--strict', '-k', '1.37', file])).code,
        'a wrong one',
      ).not.to.equal(0);
    });
  }

  it('refuses a setting that does not exist, one out of its range, and an installation without a broker', async function () {
    const said = async (...more: string[]): Promise<string> => {
      const { code, output } = await template(this, 'small', ...more);
      expect(code, more.join(' ')).not.to.equal(0);
      return output;
    };
    expect(await said('--set', 'settings.HTTP_DRIAN_MS=5000')).to.include('HTTP_DRIAN_MS');
    expect(await said('--set', 'settings.HTTP_DRAIN_MS=50000')).to.include('HTTP_DRAIN_MS');
    expect(await said('--set', 'settings.LOG_LEVEL=loud')).to.include('LOG_LEVEL');
    expect(await said('--set', 'settings.NODE_ENV=test'), 'what the chart decides').to.include('NODE_ENV');
    expect(await said('--set', 'settings.JWT_SECRET=secret'), 'a secret is no value').to.include('JWT_SECRET');
    expect(await said('--set', 'api.terminationGracePeriodSeconds=10')).to.include('terminationGracePeriodSeconds');
    const both = 'settings.REDIS_TLS_CA=PEM,settings.REDIS_TLS_CA_FILE=/etc/seckill/ca.pem';
    expect(await said('--set', both)).to.include('must not both be set');
    expect(await said('--set', 'settings.REDIS_TLS_CA_FILE=ca.pem'), 'no path').to.include('REDIS_TLS_CA_FILE');
    const without = await runTool(this, 'helm', TEMPLATE);
    expect([without.code === 0, without.output.includes('ROCKETMQ_ENDPOINT')]).to.deep.equal([false, true]);
  });

  it('refuses a pod less time than its program takes to stop, the sleep before it too', async function () {
    const stopSeconds = STOP_TIMEOUT_MS / 1000;
    const set = (preStop: number, grace: number): Promise<ToolEnd> =>
      template(this, 'small', '--set', `api.preStopSeconds=${preStop},api.terminationGracePeriodSeconds=${grace}`);
    const tooShort = await set(30, 30 + stopSeconds);
    expect(tooShort.code).not.to.equal(0);
    expect(tooShort.output).to.include(`api.terminationGracePeriodSeconds must be above ${30 + stopSeconds}`);
    const enough = await set(30, 31 + stopSeconds);
    expect(enough.code, enough.output).to.equal(0);
  });

  it('a file that a setting names is below a mount of its container, and its secret is not asked for', async function () {
    const manifests = await rendered(this, 'full');
    const pods = manifests.flatMap(({ spec }) => (spec.template === undefined ? [] : [spec.template.spec]));
    expect(pods.length).to.equal(4);
    const files = new Map<string, string[]>();
    for (const { containers, initContainers = [], volumes = [] } of pods)
      for (const { name, env, volumeMounts = [] } of [...initContainers, ...containers]) {
        const folders = volumeMounts.map(({ mountPath }) => `${mountPath}/`);
        const named = env.filter((one) => one.name === 'NODE_EXTRA_CA_CERTS' || one.name.endsWith('_FILE'));
        for (const { value = '' } of named)
          expect(
            folders.some((folder) => value.startsWith(folder)),
            value,
          ).to.equal(true);
        expect(volumes.map((one) => one.name)).to.include.members(volumeMounts.map((one) => one.name));
        const names = env.map((one) => one.name);
        expect(new Set(names).size, `${name}: each variable once`).to.equal(names.length);
        const ofFiles = names.filter((one) => one.endsWith('_FILE'));
        for (const one of ofFiles) expect(names, `${one} alone`).not.to.include(one.replace(/_FILE$/, ''));
        files.set(name, ofFiles);
      }
    expect(files.get('migrate')).to.have.members([
      'MYSQL_PASSWORD_FILE',
      'MYSQL_TLS_CA_FILE',
      'MYSQL_TLS_CERT_FILE',
      'MYSQL_TLS_KEY_FILE',
    ]);
    expect(files.get('topics')).to.deep.equal(['ROCKETMQ_TLS_CA_FILE']);
    expect(files.get('api')).to.include('JWT_SECRET_FILE');
    expect(files.get('worker')).to.include('REDIS_URL_FILE').and.not.include('JWT_SECRET_FILE');
  });

  it('what a program sets in `env` goes before what all set, and both before what the chart would set', async function () {
    const values = 'env[0].name=REDIS_URL,env[0].value=a,worker.env[0].name=REDIS_URL,worker.env[0].value=b';
    const manifests = await rendered(this, 'small', '--set', values);
    const found = (['api', 'worker'] as const).map((program) =>
      of(manifests, 'Deployment', `shop-seckill-${program}`).spec.template.spec.containers[0]?.env.filter(
        ({ name }) => name === 'REDIS_URL',
      ),
    );
    expect(found).to.deep.equal([[{ name: 'REDIS_URL', value: 'a' }], [{ name: 'REDIS_URL', value: 'b' }]]);
  });

  it('an upgrade goes program by program: a new chart leaves those alone that keep their tag', async function () {
    const before = await rendered(this, 'small', '--set', 'image.tag=1.0.0');
    const next = join(folder, 'next');
    cpSync(CHART, next, { recursive: true });
    const about = join(next, 'Chart.yaml');
    writeFileSync(about, readFileSync(about, 'utf8').replace(/ersion: \d.*/gi, 'ersion: 9.9.9'));
    const upgraded = async (tags: string): Promise<Manifest[]> => {
      const args = TEMPLATE.map((one) => (one === CHART ? next : one));
      const { code, output } = await runTool(this, 'helm', [...args, '-f', valuesFile('small'), '--set', tags]);
      expect(code, output).to.equal(0);
      expect(output, 'the chart is a new one').to.include('seckill-9.9.9');
      return parseAllDocuments(output)
        .map((document) => document.toJS() as Manifest | null)
        .filter((manifest) => manifest !== null);
    };
    const changed = (manifests: readonly Manifest[]): string[] =>
      ['api', 'worker', 'keeper'].filter((program) => {
        const specs = [before, manifests].map((all) => of(all, 'Deployment', `shop-seckill-${program}`).spec);
        return JSON.stringify(specs[0]) !== JSON.stringify(specs[1]);
      });
    const first = await upgraded('image.tag=2.0.0,keeper.image.tag=1.0.0,api.image.tag=1.0.0');
    expect(changed(first)).to.deep.equal(['worker']);
    const { initContainers = [], containers } = of(first, 'Job').spec.template.spec;
    for (const { image } of [...initContainers, ...containers]) expect(image, 'the new tables').to.match(/:2\.0\.0$/);
    expect(changed(await upgraded('image.tag=2.0.0,api.image.tag=1.0.0'))).to.deep.equal(['worker', 'keeper']);
    expect(changed(await upgraded('image.tag=2.0.0'))).to.deep.equal(['api', 'worker', 'keeper']);
    const digest = `sha256:${'0'.repeat(64)}`;
    const pinned = await rendered(this, 'full', '--set', `worker.image.digest=${digest},api.image.tag=1.0.0`);
    const images = ['worker', 'api'].map(
      (program) => of(pinned, 'Deployment', `shop-seckill-${program}`).spec.template.spec.containers[0]?.image,
    );
    expect(images).to.deep.equal([`registry.example/shop/seckill@${digest}`, 'registry.example/shop/seckill:1.0.0']);
  });

  it('a Service that the internet reaches keeps the addresses of clients', async function () {
    const policy = async (values: string): Promise<unknown> =>
      of(await rendered(this, 'small', '--set', values), 'Service', 'shop-seckill-api').spec.externalTrafficPolicy;
    expect(await policy('service.type=LoadBalancer')).to.equal('Local');
    expect(await policy('service.type=NodePort')).to.equal('Local');
    expect(await policy('service.type=NodePort,service.externalTrafficPolicy=Cluster')).to.equal('Cluster');
    expect(await policy('service.externalTrafficPolicy=Local'), 'Kubernetes refuses it there').to.equal(undefined);
  });

  for (const program of ['api', 'worker', 'keeper'] as const) {
    it(`${program}: settings and secrets that it reads and no others, probes and ports as documented, time to drain`, async function () {
      const manifests = await rendered(this, 'full');
      const { spec } = of(manifests, 'Deployment', `shop-seckill-${program}`).spec.template;
      const [container] = spec.containers as [Container];
      expect(container.args).to.deep.equal([program]);
      const keys = keysOf(PROGRAM_SECTIONS[program]);
      const files = new Set([...keys.values()].filter(({ fromFile }) => fromFile).map(({ env }) => fileVariable(env)));
      const own = container.env.filter(({ name }) => !['NODE_EXTRA_CA_CERTS', 'TZ'].includes(name));
      for (const { name, value, valueFrom } of own) {
        if (files.has(name)) continue;
        const key = keys.get(name);
        expect(key, `${name} is no setting of ${program}`).not.to.equal(undefined);
        if (valueFrom === undefined) expect(() => key?.parse(value as string), name).not.to.throw();
        else expect([key?.secret, valueFrom.secretKeyRef.optional], name).to.deep.equal([true, key?.optional]);
      }
      const { settings } = parse(readFileSync(valuesFile('full'), 'utf8')) as { settings: Record<string, unknown> };
      const given = Object.keys(settings).filter((name) => keys.has(name) || files.has(name));
      expect(own.map(({ name }) => name)).to.include.members(given);
      const plain = Object.fromEntries(own.map(({ name, value }) => [name, value]));
      for (const name of given) expect(plain[name], name).to.equal(String(settings[name]));

      const port = (name: string): number | undefined =>
        container.ports?.find((one) => one.name === name)?.containerPort;
      const probed = program === 'api' ? 'operators' : 'metrics';
      const section = { api: SCHEMA.operators, worker: SCHEMA.workerMetrics, keeper: SCHEMA.keeperMetrics }[program];
      expect(port(probed)).to.equal(section.port.fallback);
      if (program === 'api') expect(port('buyers')).to.equal(SCHEMA.http.port.fallback);
      const alive = { path: '/healthz', port: probed };
      expect([container.startupProbe.httpGet, container.livenessProbe.httpGet]).to.deep.equal([alive, alive]);
      expect(container.readinessProbe.httpGet).to.deep.equal({
        path: '/readyz',
        port: program === 'api' ? 'buyers' : probed,
      });
      const sleeps = container.lifecycle?.preStop.sleep.seconds ?? 0;
      expect(sleeps > 0, 'an api waits until nobody sends it connections').to.equal(program === 'api');
      expect(spec.terminationGracePeriodSeconds).to.be.above(sleeps + STOP_TIMEOUT_MS / 1000);

      expect(spec.securityContext).to.include({ runAsNonRoot: true, runAsUser: 10001 });
      expect(container.securityContext).to.deep.include({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
      });
      expect(container.image).to.match(/^registry\.example\/shop\/seckill@sha256:/);
    });
  }

  it('makes tables, then topics, before an installation and an upgrade', async function () {
    const job = of(await rendered(this, 'full'), 'Job');
    expect(job.spec.activeDeadlineSeconds).to.equal(7200);
    expect(of(await rendered(this, 'small'), 'Job').spec.activeDeadlineSeconds).to.equal(3600);
    expect(job.metadata.annotations?.['helm.sh/hook']).to.equal('pre-install,pre-upgrade');
    const { initContainers = [], containers } = job.spec.template.spec;
    const steps = [...initContainers, ...containers];
    expect(steps.map(({ args }) => args)).to.deep.equal([
      ['migrate', '--allow-locks'],
      ['topics', '--cluster', 'production'],
    ]);
    expect(initContainers.length, 'one after the other').to.equal(1);
    expect(steps[0]?.env.map(({ name }) => name))
      .to.include('MYSQL_URL')
      .and.not.include('JWT_SECRET');
    expect(steps[1]?.env.map(({ name }) => name)).to.include.members(['NAMESRV_ADDR', 'ROCKETMQ_ACCESS_SECRET']);
    const onlyTopics = of(await rendered(this, 'small', '--set', 'migrate.enabled=false'), 'Job').spec.template.spec;
    expect([onlyTopics.initContainers, onlyTopics.containers.map(({ name }) => name)]).to.deep.equal([
      undefined,
      ['topics'],
    ]);
    const none = await rendered(this, 'small', '--set', 'migrate.enabled=false,topics.enabled=false');
    expect(none.filter(({ kind }) => kind === 'Job')).to.deep.equal([]);
  });

  it('the number of apis is that of the autoscaler or a fixed one, never both', async function () {
    const small = await rendered(this, 'small');
    const full = await rendered(this, 'full');
    const api = (manifests: readonly Manifest[], name: string): Manifest => of(manifests, 'Deployment', name);
    expect(api(small, 'shop-seckill-api').spec).not.to.have.property('replicas');
    expect(of(small, 'HorizontalPodAutoscaler').spec).to.include({ minReplicas: 2, maxReplicas: 10 });
    expect(api(full, 'shop-seckill-api').spec.replicas).to.equal(6);
    expect(full.filter(({ kind }) => kind === 'HorizontalPodAutoscaler')).to.deep.equal([]);
    expect(small.filter(({ kind }) => kind === 'PodDisruptionBudget').length).to.equal(3);
  });

  it('nobody reaches the ports of operators and metrics but who is named; the metrics are scraped by the names of these ports', async function () {
    const policiesOf = (
      manifests: readonly Manifest[],
    ): Map<string, { ports: { port: number }[]; from?: object[] }[]> =>
      new Map(
        manifests
          .filter(({ kind, spec }) => kind === 'NetworkPolicy' && spec.ingress !== undefined)
          .map(({ metadata, spec }) => [
            metadata.name,
            spec.ingress as { ports: { port: number }[]; from?: object[] }[],
          ]),
      );
    const closed = policiesOf(await rendered(this, 'small'));
    expect(closed.get('shop-seckill-api')?.map(({ ports }) => ports.map(({ port }) => port))).to.deep.equal([[8080]]);
    expect([closed.get('shop-seckill-worker'), closed.get('shop-seckill-keeper')]).to.deep.equal([[], []]);
    const full = await rendered(this, 'full');
    const open = policiesOf(full);
    expect(open.get('shop-seckill-api')?.map(({ ports, from = [] }) => [ports[0]?.port, from.length])).to.deep.equal([
      [8080, 1],
      [9103, 2],
    ]);
    expect(open.get('shop-seckill-keeper')?.map(({ ports, from = [] }) => [ports[0]?.port, from.length])).to.deep.equal(
      [[9102, 1]],
    );

    const out = of(full, 'NetworkPolicy', 'shop-seckill-out').spec.egress as { ports: { port: number }[] }[];
    const outPorts = out.flatMap(({ ports }) => ports.map(({ port }) => port));
    expect(outPorts, 'servers, and sentinels').to.include.members([3306, 6379, 26379, 8081, 9876, 10911]);

    const { spec, apiVersion } = of(full, 'PodMonitor');
    const endpoints = spec.podMetricsEndpoints as { port: string; path: string; authorization: object }[];
    expect([apiVersion, endpoints.map(({ port, path }) => `${port} ${path}`)]).to.deep.equal([
      'monitoring.coreos.com/v1',
      ['operators /metrics', 'metrics /metrics'],
    ]);
    const credentials = { name: 'shop-seckill', key: 'METRICS_TOKEN' };
    for (const { authorization } of endpoints) expect(authorization).to.deep.equal({ type: 'Bearer', credentials });
    expect((await rendered(this, 'small')).filter(({ kind }) => kind === 'PodMonitor')).to.deep.equal([]);
  });
});

const keysOf = (sections: readonly SectionName[]): Map<string, Key<string | number>> =>
  new Map((settingsOf(sections) as Key<string | number>[]).map((key) => [key.env, key]));
