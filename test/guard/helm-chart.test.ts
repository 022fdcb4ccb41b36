import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { valuesSchema } from '../../deploy/helm/files.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { STOP_TIMEOUT_MS } from '../../src/programs/run-program.js';
import { version } from '../../src/programs/version.js';

const CHART = join(REPO_DIR, 'deploy/helm/seckill');
const read = (name: string): string => readFileSync(join(CHART, name), 'utf8');

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly minimum?: number;
}

/** What is seen without helm; test/deploy has the rest. */
describe('guard: the Helm chart', () => {
  it('every value that it has by default is in the schema', () => {
    const missing = (values: object, schema: Schema, path: string): string[] =>
      Object.entries(values).flatMap(([name, value]: [string, unknown]) => {
        const inner = schema.properties?.[name];
        if (inner === undefined) return schema.additionalProperties === false ? [`${path}${name}`] : [];
        const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
        return isMap ? missing(value as object, inner, `${path}${name}.`) : [];
      });
    const values = parse(read('values.yaml')) as object;
    expect(missing(values, valuesSchema() as Schema, '')).to.deep.equal([]);
    expect(missing({ ...values, apis: 2 }, valuesSchema() as Schema, ''), 'one that is not').to.deep.equal(['apis']);
  });

  it('a pod has more time than its program takes to stop, whatever is set', () => {
    const { api, worker, keeper } = parse(read('values.yaml')) as Record<
      string,
      { terminationGracePeriodSeconds: number; preStopSeconds: number }
    >;
    const stopSeconds = STOP_TIMEOUT_MS / 1000;
    expect(api?.terminationGracePeriodSeconds).to.be.above((api?.preStopSeconds ?? 0) + stopSeconds);
    for (const program of [worker, keeper]) expect(program?.terminationGracePeriodSeconds).to.be.above(stopSeconds);
    const { properties } = valuesSchema() as Schema;
    for (const name of ['api', 'worker', 'keeper'])
      expect(properties?.[name]?.properties?.terminationGracePeriodSeconds?.minimum, name).to.be.above(stopSeconds);
  });

  it('has the version of the package', () => {
    expect(parse(read('Chart.yaml'))).to.include({ version, appVersion: version });
  });
});
