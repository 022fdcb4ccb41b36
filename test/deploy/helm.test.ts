import { expect } from 'chai';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { fileVariable } from '../../src/core/config/key.js';
import { PROGRAM_SECTIONS, SCHEMA } from '../../src/core/config/schema.js';
import { STOP_TIMEOUT_MS } from '../../src/programs/run-program.js';
import { keysOf } from '../guard/helm-settings.js';
import { runTool, type ToolEnd } from './tools.js';

const CHART = join(REPO_DIR, 'deploy/helm/seckill');
/** The oldest version that the chart supports, a middle version, and the newest that the validator knows. */
const KUBERNETES = ['1.30', '1.33', '1.37'];
const PROGRAMS = ['api', 'worker', 'keeper'] as const;
type Values = 'small' | 'full';

interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly optional: boolean } };
}
interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly image: string;
  readonly env: readonly EnvVar[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: object;
  readonly startupProbe: { readonly httpGet: object };
  readonly livenessProbe: { readonly httpGet: object };
  readonly readinessProbe: { readonly httpGet: object };
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
}
interface PodSpec {
  readonly containers: readonly [Container];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly { readonly name: string }[];
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext: object;
}
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: Readonly<Record<string, unknown>> & { readonly template?: { readonly spec: PodSpec } };
}
type Rules = readonly { readonly ports: readonly { readonly port: number }[]; readonly from?: readonly object[] }[];

const valuesFile = (values: Values): string => join(CHART, 'ci', `${values}-values.yaml`);
const manifestsIn = (yaml: string): Manifest[] =>
  parseAllDocuments(yaml).flatMap((document) => (document.toJS() as Manifest | null) ?? []);
const named = (manifests: readonly Manifest[], kind: string, part?: string): Manifest => {
  const found = manifests.find(
    ({ kind: one, metadata }) => one === kind && (part === undefined || metadata.name === `shop-seckill-${part}`),
  );
  if (found === undefined) throw new Error(`no ${kind} ${part ?? ''}`);
  return found;
};
const podOf = (manifests: readonly Manifest[], program: string): PodSpec =>
  named(manifests, 'Deployment', program).spec.template?.spec as PodSpec;
const containersOf = ({ initContainers = [], containers }: PodSpec): Container[] => [...initContainers, ...containers];

describe('the Helm chart', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'seckill-helm-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const template = (test: Mocha.Context, values: Values, set = '', chart = CHART): Promise<ToolEnd> =>
    runTool(test, 'helm', [
      ...['template', 'shop', chart, '--kube-version', '1.37.0', '-f', valuesFile(values)],
      ...(set === '' ? [] : ['--set', set]),
    ]);
  const rendered = async (test: Mocha.Context, values: Values, set = '', chart = CHART): Promise<Manifest[]> => {
    const { code, output } = await template(test, values, set, chart);
    expect(code, output).to.equal(0);
    return manifestsIn(output);
  };

  for (const values of ['small', 'full'] as const) {
    it(`passes helm lint with ${values} values`, async function () {
      const { code, output } = await runTool(this, 'helm', ['lint', '--strict', CHART, '-f', valuesFile(values)]);
      expect(code, output).to.equal(0);
    });

    it(`renders manifests that Kubernetes ${KUBERNETES.join(', ')} accepts with ${values} values`, async function () {
      // the validator has no schemas of the Prometheus operator
      const known = (await rendered(this, values)).filter(({ apiVersion }) => !apiVersion.startsWith('monitoring.'));
      expect(known.length).to.be.above(10);
      const validated = (version: string, manifests: readonly object[]): Promise<ToolEnd> => {
        const file = join(folder, `${values}.yaml`);
        // the validator reads YAML 1.1, where a bare `on` is a boolean
        writeFileSync(file, manifests.map((manifest) => stringify(manifest, { version: '1.1' })).join('---\n'));
        return runTool(this, 'kubernetes-validate', ['--strict', '-k', version, file]);
      };
      for (const version of KUBERNETES) {
        const { code, output } = await validated(version, known);
        expect(code, `${version}: ${output}`).to.equal(0);
      }
      const wrong = { ...known[0], spec: { ...known[0]?.spec, replicaz: 2 } };
      expect((await validated('1.37', [wrong])).code, 'an unknown field').not.to.equal(0);
    });
  }

  it('refuses unknown values, unknown settings, secrets among settings, and an installation without a broker', async function () {
    const refused: Readonly<Record<string, string>> = {
      'apis.replicas=2': 'apis',
      'worker.replica=2': 'replica',
      'ingress.hosts=shop.example': 'hosts',
      'settings.HTTP_DRIAN_MS=5000': 'settings.HTTP_DRIAN_MS is unknown',
      'settings.NODE_ENV=test': 'settings.NODE_ENV is unknown',
      'settings.JWT_SECRET=secret': 'settings.JWT_SECRET is unknown',
      'settings.MYSQL_TLS=true': 'MYSQL_TLS',
      'image.digest=sha256:0': 'digest',
    };
    for (const [set, reason] of Object.entries(refused)) {
      const { code, output } = await template(this, 'small', set);
      expect(code, set).not.to.equal(0);
      expect(output).to.include(reason);
    }
    const without = await runTool(this, 'helm', ['template', 'shop', CHART, '--kube-version', '1.37.0']);
    expect(without.code).not.to.equal(0);
    expect(without.output).to.include('ROCKETMQ_ENDPOINT');
  });

  it('refuses to give a pod less time than its sleep and its program need to stop', async function () {
    const least = 30 + STOP_TIMEOUT_MS / 1000 + 1;
    const set = (grace: number): string => `api.preStopSeconds=30,api.terminationGracePeriodSeconds=${grace}`;
    const tooShort = await template(this, 'small', set(least - 1));
    expect(tooShort.code).not.to.equal(0);
    expect(tooShort.output).to.include(`api.terminationGracePeriodSeconds must be at least ${least}`);
    await rendered(this, 'small', set(least));
  });

  it('mounts each file of a setting, sets each variable once, and prefers a file to the Secret', async function () {
    const pods = (await rendered(this, 'full')).flatMap(({ spec }) => spec.template?.spec ?? []);
    expect(pods.length).to.equal(4);
    const files = new Map<string, string[]>();
    for (const pod of pods)
      for (const { name, env, volumeMounts = [] } of containersOf(pod)) {
        const names = env.map((one) => one.name);
        expect(new Set(names).size, `${name}: each variable once`).to.equal(names.length);
        for (const { name: variable, value = '' } of env)
          if (variable === 'NODE_EXTRA_CA_CERTS' || variable.endsWith('_FILE'))
            expect(
              volumeMounts.some(({ mountPath }) => value.startsWith(`${mountPath}/`)),
              value,
            ).to.equal(true);
        expect(pod.volumes?.map((one) => one.name)).to.include.members(volumeMounts.map((one) => one.name));
        const ofFiles = names.filter((one) => one.endsWith('_FILE'));
        for (const one of ofFiles) expect(names).not.to.include(one.replace(/_FILE$/, ''));
        files.set(name, ofFiles);
      }
    const mysql = ['MYSQL_PASSWORD_FILE', 'MYSQL_TLS_CA_FILE', 'MYSQL_TLS_CERT_FILE', 'MYSQL_TLS_KEY_FILE'];
    expect(files.get('migrate')).to.have.members(mysql);
    expect(files.get('topics')).to.deep.equal(['ROCKETMQ_TLS_CA_FILE']);
    expect(files.get('api')).to.include('JWT_SECRET_FILE');
    expect(files.get('worker')).to.include('REDIS_URL_FILE').and.not.include('JWT_SECRET_FILE');
  });

  it("prefers `env` of a program to `env` of all pods, and both to the chart's own variables", async function () {
    const values = 'env[0].name=REDIS_URL,env[0].value=a,worker.env[0].name=REDIS_URL,worker.env[0].value=b';
    const manifests = await rendered(this, 'small', values);
    const found = PROGRAMS.map((program) =>
      podOf(manifests, program).containers[0].env.filter(({ name }) => name === 'REDIS_URL'),
    );
    const [a, b] = ['a', 'b'].map((value) => [{ name: 'REDIS_URL', value }]);
    expect(found).to.deep.equal([a, b, a]);
  });

  it('changes only programs with a new tag when the chart is upgraded', async function () {
    const before = await rendered(this, 'small', 'image.tag=1.0.0');
    const next = join(folder, 'next');
    cpSync(CHART, next, { recursive: true });
    const about = join(next, 'Chart.yaml');
    writeFileSync(about, readFileSync(about, 'utf8').replace(/ersion: \d.*/gi, 'ersion: 9.9.9'));
    const changed = (manifests: readonly Manifest[]): string[] =>
      PROGRAMS.filter((program) => {
        const [old, now] = [before, manifests].map((all) => named(all, 'Deployment', program).spec);
        return JSON.stringify(old) !== JSON.stringify(now);
      });
    const first = await rendered(this, 'small', 'image.tag=2.0.0,keeper.image.tag=1.0.0,api.image.tag=1.0.0', next);
    expect(JSON.stringify(first), 'the new chart').to.include('seckill-9.9.9');
    expect(changed(first)).to.deep.equal(['worker']);
    for (const { image } of containersOf(named(first, 'Job').spec.template?.spec as PodSpec))
      expect(image, 'the new tables').to.match(/:2\.0\.0$/);
    const second = await rendered(this, 'small', 'image.tag=2.0.0,api.image.tag=1.0.0', next);
    expect(changed(second)).to.deep.equal(['worker', 'keeper']);
    expect(changed(await rendered(this, 'small', 'image.tag=2.0.0', next))).to.deep.equal([...PROGRAMS]);
    const digest = `sha256:${'0'.repeat(64)}`;
    const pinned = await rendered(this, 'full', `worker.image.digest=${digest},api.image.tag=1.0.0`);
    const images = ['worker', 'api'].map((program) => podOf(pinned, program).containers[0].image);
    expect(images).to.deep.equal([`registry.example/shop/seckill@${digest}`, 'registry.example/shop/seckill:1.0.0']);
  });

  it('preserves client addresses behind a LoadBalancer or NodePort', async function () {
    const policy = async (set: string): Promise<unknown> =>
      named(await rendered(this, 'small', set), 'Service', 'api').spec.externalTrafficPolicy;
    expect(await policy('service.type=LoadBalancer')).to.equal('Local');
    expect(await policy('service.type=NodePort,service.externalTrafficPolicy=Cluster')).to.equal('Cluster');
    expect(await policy('service.externalTrafficPolicy=Local'), 'Kubernetes refuses it there').to.equal(undefined);
  });

  for (const program of PROGRAMS) {
    it(`gives ${program} only the settings and secrets that it reads, its probes and ports, and time to drain`, async function () {
      const pod = podOf(await rendered(this, 'full'), program);
      const [container] = pod.containers;
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
      const values = new Map(own.map(({ name, value }) => [name, value]));
      for (const [name, value] of Object.entries(settings))
        if (keys.has(name) || files.has(name)) expect(values.get(name), name).to.equal(String(value));

      const ports = Object.fromEntries((container.ports ?? []).map(({ name, containerPort }) => [name, containerPort]));
      expect(ports).to.deep.equal(
        {
          api: { buyers: SCHEMA.http.port.fallback, operators: SCHEMA.operators.port.fallback },
          worker: { metrics: SCHEMA.workerMetrics.port.fallback },
          keeper: { metrics: SCHEMA.keeperMetrics.port.fallback },
        }[program],
      );
      const [first, last] = [Object.keys(ports)[0], Object.keys(ports).at(-1)];
      expect(container.startupProbe.httpGet).to.deep.equal({ path: '/healthz', port: last });
      expect(container.livenessProbe.httpGet).to.deep.equal({ path: '/healthz', port: last });
      expect(container.readinessProbe.httpGet).to.deep.equal({ path: '/readyz', port: first });
      const sleeps = container.lifecycle?.preStop.sleep.seconds ?? 0;
      expect(sleeps > 0, 'only an api waits for clients').to.equal(program === 'api');
      expect(pod.terminationGracePeriodSeconds).to.be.above(sleeps + STOP_TIMEOUT_MS / 1000);
      expect(pod.securityContext).to.include({ runAsNonRoot: true, runAsUser: 10001 });
      expect(container.securityContext).to.deep.equal({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
      });
    });
  }

  it('creates tables, then topics, before an installation and an upgrade', async function () {
    const job = named(await rendered(this, 'full'), 'Job');
    expect(job.spec.activeDeadlineSeconds).to.equal(7200);
    expect(job.metadata.annotations?.['helm.sh/hook']).to.equal('pre-install,pre-upgrade');
    const { initContainers = [], containers } = job.spec.template?.spec as PodSpec;
    expect([initContainers, containers].map((steps) => steps.map(({ args }) => args))).to.deep.equal([
      [['migrate', '--allow-locks']],
      [['topics', '--cluster', 'production']],
    ]);
    const [tables = [], topics] = [...initContainers, ...containers].map(({ env }) => env.map(({ name }) => name));
    expect(tables).to.include('MYSQL_URL').and.not.include('JWT_SECRET');
    expect(topics).to.include.members(['NAMESRV_ADDR', 'ROCKETMQ_ACCESS_SECRET']);
    const onlyTopics = named(await rendered(this, 'small', 'migrate.enabled=false'), 'Job');
    expect(onlyTopics.spec.activeDeadlineSeconds).to.equal(3600);
    const steps = containersOf(onlyTopics.spec.template?.spec as PodSpec).map(({ name }) => name);
    expect(steps).to.deep.equal(['topics']);
    const neither = await rendered(this, 'small', 'migrate.enabled=false,topics.enabled=false');
    expect(neither.filter(({ kind }) => kind === 'Job')).to.deep.equal([]);
  });

  it('sets the number of apis by an autoscaler or as a fixed number, never both', async function () {
    const [small, full] = [await rendered(this, 'small'), await rendered(this, 'full')];
    expect(named(small, 'Deployment', 'api').spec).not.to.have.property('replicas');
    expect(named(small, 'HorizontalPodAutoscaler').spec).to.include({ minReplicas: 2, maxReplicas: 10 });
    expect(named(full, 'Deployment', 'api').spec.replicas).to.equal(6);
    expect(full.filter(({ kind }) => kind === 'HorizontalPodAutoscaler')).to.deep.equal([]);
    expect(small.filter(({ kind }) => kind === 'PodDisruptionBudget').length).to.equal(3);
  });

  it('opens the ports of operators and metrics only to named peers', async function () {
    const ingressOf = (manifests: readonly Manifest[]): unknown[] =>
      PROGRAMS.map((program) =>
        (named(manifests, 'NetworkPolicy', program).spec.ingress as Rules).map(({ ports, from }) => [
          ports[0]?.port,
          from?.length ?? 'everybody',
        ]),
      );
    expect(ingressOf(await rendered(this, 'small'))).to.deep.equal([[[8080, 'everybody']], [], []]);
    const full = await rendered(this, 'full');
    const apiRules = [
      [8080, 1],
      [9103, 2],
    ];
    expect(ingressOf(full)).to.deep.equal([apiRules, [[9101, 1]], [[9102, 1]]]);
    const out = (named(full, 'NetworkPolicy', 'out').spec.egress as Rules).flatMap(({ ports }) => ports);
    expect(out.map(({ port }) => port)).to.include.members([53, 3306, 6379, 26379, 8081, 9876, 10911, 443]);
  });

  it('scrapes the named metrics ports with the token of the Secret, and labels each program', async function () {
    const { spec, apiVersion } = named(await rendered(this, 'full'), 'PodMonitor');
    expect(apiVersion).to.equal('monitoring.coreos.com/v1');
    const credentials = { name: 'shop-seckill', key: 'METRICS_TOKEN' };
    const authorization = { type: 'Bearer', credentials };
    const sourceLabels = ['__meta_kubernetes_pod_label_app_kubernetes_io_component'];
    const relabelings = [{ sourceLabels, targetLabel: 'program' }];
    const endpoint = { path: '/metrics', interval: '5s', honorLabels: true, relabelings, authorization };
    expect(spec.podMetricsEndpoints).to.deep.equal([
      { port: 'operators', ...endpoint },
      { port: 'metrics', ...endpoint },
    ]);
    const small = (await rendered(this, 'small')).map(({ kind }) => kind);
    expect(small).not.to.include('PodMonitor').and.not.include('ScrapeConfig');
  });

  it('asks an api through the ingress whether it can sell', async function () {
    const full = await rendered(this, 'full');
    const { spec, metadata } = named(full, 'ScrapeConfig');
    const scraped = (target: string) => [{ labels: { program: 'proxy' }, targets: [target] }];
    const asked = { metricsPath: '/readyz', scheme: 'HTTPS', scrapeInterval: '5s' };
    expect(spec).to.deep.equal({ ...asked, staticConfigs: scraped('sale.example:443') });
    expect(metadata).to.have.nested.property('labels.release', 'prometheus');
    const [{ http }] = named(full, 'Ingress').spec.rules as [{ http: { paths: { path: string; pathType: string }[] } }];
    const paths = http.paths.map(({ path, pathType }) => `${pathType} ${path}`);
    expect(paths).to.have.members(['Prefix /v1/', 'Prefix /s/', 'Exact /readyz']);
    const elsewhere = 'podMonitor.enabled=true,podMonitor.shop=a.example:8443';
    const other = named(await rendered(this, 'small', elsewhere), 'ScrapeConfig');
    expect(other.spec.staticConfigs).to.deep.equal(scraped('a.example:8443'));
  });
});
