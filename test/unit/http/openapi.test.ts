import { expect } from 'chai';
import fc from 'fast-check';
import { z } from 'zod';
import { PROBLEMS, type ProblemCode } from '../../../src/contract/problem.js';
import { openapiOf } from '../../../src/http/openapi.js';
import { routesOf } from '../../../src/http/route.js';
import { ROUTES } from '../../../src/programs/routes.js';
import { purchase, readWanted } from '../../../src/http/routes/purchase.js';

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: object;
}
interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, { readonly schema: object; readonly examples?: object }>>;
}
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security: readonly object[];
  readonly parameters: readonly Parameter[];
  readonly responses: Readonly<Record<string, Response>>;
}

const SPAN_ENDS: Readonly<Record<string, string>> = { from: 'to', From: 'To' };

const isStrict = (schema: z.ZodType): boolean =>
  schema instanceof z.ZodObject && schema.def.catchall instanceof z.ZodNever;

// Rules of `redocly lint` that a change here could break, without its 30 MB.
for (const listener of ['buyers', 'operators'] as const) {
  describe(`openapi for ${listener}`, () => {
    const [routes, document] = [routesOf(ROUTES, listener), openapiOf(ROUTES, listener)];
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        path,
        method,
        operation: operation as unknown as Operation,
      })),
    );

    it('forbids unknown fields in a body that the server would refuse, and lets responses grow', () => {
      const bodies = routes.flatMap(({ method, path, body }) => {
        if (body === undefined || !isStrict(body.schema)) return [];
        const { schema } = (
          document.paths[path]?.[method]?.requestBody as { content: Record<string, { schema: { $ref?: string } }> }
        ).content['application/json'] as { schema: { $ref?: string } };
        const name = schema.$ref?.split('/').at(-1);
        return [name === undefined ? schema : document.components.schemas[name]];
      });
      for (const body of bodies) expect(body).to.include({ additionalProperties: false });
      expect(bodies.length, 'strict bodies').to.be.at.least(1);
      expect(document.components.schemas.Problem).not.to.have.property('additionalProperties');
    });

    it('refuses a time span that ends before it begins, in every query', () => {
      const endOf = (name: string): string =>
        name.replace(/^since$/, 'until').replace(/from$/i, (it) => SPAN_ENDS[it] ?? it);
      for (const { path, query } of routes) {
        const names = query instanceof z.ZodObject ? Object.keys(query.shape) : [];
        for (const name of names.filter((one) => endOf(one) !== one && names.includes(endOf(one)))) {
          const read = query?.safeParse({ [name]: '2030-01-02T00:00:00Z', [endOf(name)]: '2030-01-01T00:00:00Z' });
          const refused = read?.error?.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`);
          expect(refused, `${path} ${name}`).to.include(`${endOf(name)} must not be earlier than ${name}`);
        }
      }
    });

    it('has one operation per route with id, summary, described tag and token rules', () => {
      expect(operations.map(({ method, path }) => `${method} ${path}`)).to.have.members(
        routes.map(({ method, path }) => `${method} ${path}`),
      );
      expect(new Set(operations.map(({ operation }) => operation.operationId)).size).to.equal(routes.length);
      const tags = (document.tags as { name: string; description: string }[]).map(({ name }) => name);
      for (const { path, operation } of operations) {
        expect(operation.summary, path).to.match(/.\.$|\?$/);
        expect(tags, path).to.include.members([...operation.tags]);
        expect(operation.security, path).to.be.an('array');
      }
    });

    it('refers only to existing schemas, and has no unused schema', () => {
      const named = [...JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name);
      expect([...new Set(named)]).to.have.members(Object.keys(document.components.schemas));
      expect(JSON.stringify(document)).not.to.contain('$defs');
    });

    it('describes every path parameter with a schema', () => {
      for (const { path, operation } of operations) {
        const described = operation.parameters.filter((each) => each.in === 'path').map(({ name }) => name);
        expect(described, path).to.have.members([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
        for (const { name, schema } of operation.parameters) expect(schema, `${path} ${name}`).not.to.deep.equal({});
      }
    });

    it('has a success and a client error in every operation, and describes every response', () => {
      for (const { path, operation } of operations) {
        const statuses = Object.keys(operation.responses);
        expect(
          statuses.some((status) => status.startsWith('2')),
          path,
        ).to.equal(true);
        expect(
          statuses.some((status) => status.startsWith('4')),
          path,
        ).to.equal(true);
        for (const { description } of Object.values(operation.responses)) expect(description).to.have.length.above(3);
      }
    });

    it('describes every problem of a route, with Retry-After if a client may retry', () => {
      for (const route of routes) {
        const { responses } = document.paths[route.path]?.[route.method] as unknown as Operation;
        for (const code of route.codes) {
          const { status, detail, retryAfterMs } = PROBLEMS[code];
          const response = responses[String(status)] as Response;
          expect(response.description, `${route.path} ${code}`).to.contain(`\`${code}\`: ${detail}`);
          expect(response.content?.['application/problem+json']?.examples).to.have.property(code);
          if (retryAfterMs !== null) expect(response.headers).to.have.property('Retry-After');
          if (code === 'unauthorized') expect(response.headers).to.have.property('WWW-Authenticate');
        }
      }
    });
  });
}

describe('openapi', () => {
  it('contains every existing code', () => {
    const documented = new Set(ROUTES.flatMap(({ codes }) => codes));
    const outside = ['route_not_found', 'method_not_allowed', 'request_timeout', 'headers_too_large'];
    const left = (Object.keys(PROBLEMS) as ProblemCode[]).filter((code) => !documented.has(code));
    expect(left, 'these codes concern no route').to.have.members(outside);
  });

  it('describes the body of a purchase exactly as the hot path reads it', () => {
    const schema = purchase.body?.schema;
    const body = fc.oneof(
      fc.record({
        quantity: fc.oneof(fc.integer({ min: -2, max: 1002 }), fc.double(), fc.string(), fc.constant(null)),
      }),
      fc.record({ quantity: fc.constant(1), other: fc.integer() }),
      fc.record({
        metadata: fc.oneof(
          fc.dictionary(fc.oneof(fc.stringMatching(/^[A-Za-z0-9_]{0,9}$/), fc.string()), fc.string(), { maxKeys: 3 }),
          fc.dictionary(fc.constantFrom('a', 'b'), fc.jsonValue(), { maxKeys: 2 }),
          fc.integer({ min: 490, max: 520 }).map((length) => ({ a: 'x'.repeat(length) })),
          fc.jsonValue(),
        ),
      }),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(body, (value) => {
        const text = JSON.stringify(value);
        const read = schema?.safeParse(JSON.parse(text));
        const wanted = readWanted(text);
        expect(read?.success, text).to.equal(typeof wanted !== 'string');
        if (!read?.success || typeof wanted === 'string') return;
        const { quantity, metadata = {} } = read.data as { quantity: number; metadata?: object };
        expect([quantity, metadata]).to.deep.equal([wanted.quantity, wanted.metadata ?? {}]);
      }),
    );
  });
});
