import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { PROGRAM_SECTIONS, SCHEMA, type SectionName } from '../../src/core/config/schema.js';
import type { Key } from '../../src/core/config/key.js';
import { STOP_TIMEOUT_MS } from '../../src/programs/run-program.js';
import { runTool, type ToolEnd } from './tools.js';

const CHART = join(REPO_DIR, 'deploy/helm/seckill');
/** The oldest that the chart takes, and the newest that the validator knows. */
const KUBERNETES = ['1.30', '1.33', '1.37'];
/** Without a cluster to ask, helm has to be told what it runs on. */
const TEMPLATE = ['template', 'shop', CHART, '--kube-version', '1.37.0'];
/** helm is compiled once. */
const FETCH_MS = 900_000;

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
interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly image: string;
  readonly env: readonly EnvVar[];
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
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext: Readonly<Record<string, unknown>>;
}
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: Readonly<Record<string, unknown>> & { readonly template: { readonly spec: PodSpec } };
}

describe('the Helm chart', function () {
  this.timeout(FETCH_MS);
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
      writeFileSync(file, known.map((manifest) => stringify(manifest)).join('---\n'));
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
    const without = await runTool(this, 'helm', TEMPLATE);
    expect([without.code === 0, without.output.includes('ROCKETMQ_ENDPOINT')]).to.deep.equal([false, true]);
  });

  for (const program of ['api', 'worker', 'keeper'] as const) {
    it(`${program}: settings and secrets that it reads and no others, probes and ports as documented, time to drain`, async function () {
      const manifests = await rendered(this, 'full');
      const { spec } = of(manifests, 'Deployment', `shop-seckill-${program}`).spec.template;
      const [container] = spec.containers as [Container];
      expect(container.args).to.deep.equal([program]);
      const keys = keysOf(PROGRAM_SECTIONS[program]);
      const own = container.env.filter(({ name }) => name !== 'NODE_EXTRA_CA_CERTS');
      for (const { name, value, valueFrom } of own) {
        const key = keys.get(name);
        expect(key, `${name} is no setting of ${program}`).not.to.equal(undefined);
        if (valueFrom === undefined) expect(() => key?.parse(value as string), name).not.to.throw();
        else expect([key?.secret, valueFrom.secretKeyRef.optional], name).to.deep.equal([true, key?.optional]);
      }
      const { settings } = parse(readFileSync(valuesFile('full'), 'utf8')) as { settings: Record<string, unknown> };
      const given = Object.keys(settings).filter((name) => keys.has(name));
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
    expect(job.metadata.annotations?.['helm.sh/hook']).to.equal('pre-install,pre-upgrade');
    const { initContainers = [], containers } = job.spec.template.spec;
    const steps = [...initContainers, ...containers];
    expect(steps.map(({ args }) => args)).to.deep.equal([['migrate'], ['topics', '--cluster', 'production']]);
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
  new Map(
    sections.flatMap((name) => Object.values(SCHEMA[name]) as Key<string | number>[]).map((key) => [key.env, key]),
  );
