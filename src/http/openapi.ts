import { z } from 'zod';
import { PROBLEMS, problemSchema, type ProblemCode } from '../contract/problem.js';
import { PROBLEM_TYPE, problemOf } from './problem.js';
import { routesOf, type AnswerSpec, type Listener, type Route } from './route.js';

/** A part of the document. */
type Json = Record<string, unknown>;

/** Title and address for each listener. The address at which buyers reach it is not known here. */
const ABOUT: Readonly<Record<Listener, { readonly title: string; readonly servers: readonly Json[] }>> = {
  buyers: {
    title: 'Seckill',
    servers: [
      {
        url: '{address}',
        description: 'the address of the api for buyers',
        variables: { address: { default: 'http://127.0.0.1:8080' } },
      },
    ],
  },
  operators: {
    title: 'Seckill for operators',
    servers: [{ url: '/', description: 'the server that returned this document' }],
  },
};

/** Returns the OpenAPI 3.1 document of a listener, generated from the schemas that check its requests. */
export function openapiOf(
  all: readonly Route[],
  listener: Listener,
): {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Json>>; readonly securitySchemes: Json };
} & Json {
  const routes = routesOf(all, listener);
  const { title, servers } = ABOUT[listener];
  const schemas = new Schemas();
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) (paths[route.path] ??= {})[route.method] = operationOf(route, schemas);
  return {
    openapi: '3.1.0',
    info: {
      title,
      version: '1',
      description:
        'A flash sale that sells exactly its stock. Every error is a problem of RFC 9457, and its `code` is stable.' +
        ' Every answer has a header `Trace-Id`: the trace id of the `traceparent` of its request, or a new trace id.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers,
    tags: [...new Set(routes.map(tagOf))].map((name) => ({ name, description: TAGS[name] })),
    security: [],
    paths,
    components: {
      schemas: schemas.components,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description:
            'HS256, RS256, ES256 or EdDSA; `sub` is the buyer. Routes of operators name the role that they need:' +
            ' an operator has all rights of a viewer, and an admin all rights of an operator.',
        },
      },
    },
  };
}

type Tag = 'buyers' | 'payment provider' | 'admins' | 'probes';
const TAGS: Readonly<Record<Tag, string>> = {
  buyers: 'Sales, purchases and orders, for buyers.',
  'payment provider': 'Reports of a payment provider.',
  admins: 'For operators; the token needs the role that the operation names, or a role that includes it.',
  probes: 'For load balancers and monitoring.',
};

function tagOf({ label }: Route): Tag {
  if (label === 'admin') return 'admins';
  if (label === 'probe') return 'probes';
  return label === 'payment' ? 'payment provider' : 'buyers';
}

function operationOf(route: Route, schemas: Schemas): Json {
  const { operationId, summary, asks, body } = route;
  return {
    operationId,
    summary,
    tags: [tagOf(route)],
    security: asks.token ? [{ bearer: asks.role === null ? [] : [asks.role] }] : [],
    parameters: [
      ...parametersOf('path', route.params, schemas),
      ...parametersOf('query', route.query, schemas),
      ...(route.headers ?? []).map(({ name, required, description, schema }) => ({
        name,
        in: 'header',
        required,
        description,
        schema: schemas.of(schema, 'input'),
      })),
    ],
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.required,
            content: { 'application/json': { schema: schemas.of(body.schema, 'input') } },
          },
        }),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.answers).map(([status, answer]) => [status, answerOf(answer, schemas)]),
      ),
      ...problemsOf(route, schemas),
    },
  };
}

/** @param schema an object with one property per parameter */
function parametersOf(place: 'path' | 'query', schema: z.ZodType | undefined, schemas: Schemas): Json[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = schemas.of(schema, 'input') as {
    readonly properties?: Readonly<Record<string, Json>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema: property,
  }));
}

function answerOf({ description, schema, type, headers }: AnswerSpec, schemas: Schemas): Json {
  const json = schema === undefined ? {} : { 'application/json': { schema: schemas.of(schema, 'output') } };
  const texts = [type ?? []].flat(2).map((one) => [one, { schema: { type: 'string' } }] as const);
  const content = { ...json, ...Object.fromEntries(texts) };
  return {
    description,
    ...(headers === undefined ? {} : { headers: headersOf(headers, { type: 'string' }) }),
    ...(Object.keys(content).length === 0 ? {} : { content }),
  };
}

const headersOf = (headers: Readonly<Record<string, string>>, schema: Json): Json =>
  Object.fromEntries(Object.entries(headers).map(([name, description]) => [name, { description, schema }]));

/** Returns one response per status. It describes every problem code that has the status, with an example of each. */
function problemsOf({ codes, answers }: Route, schemas: Schemas): Record<string, Json> {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codes) {
    const { status } = PROBLEMS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const problem = schemas.of(problemSchema, 'output');
  const responses: Record<string, Json> = {};
  for (const [status, words] of byStatus) {
    const success = answers[status]; // the 503 of /readyz may also have a body of its own
    const content = {
      [PROBLEM_TYPE]: {
        schema: problem,
        examples: Object.fromEntries(
          words.map((code) => [code, { summary: PROBLEMS[code].title, value: exampleOf(code) }]),
        ),
      },
    };
    const own = success === undefined ? {} : (answerOf(success, schemas) as { description: string; content?: Json });
    responses[String(status)] = {
      description: [
        ...('description' in own ? [own.description] : []),
        ...words.map((code) => `\`${code}\`: ${PROBLEMS[code].detail}`),
      ].join('\n\n'),
      ...problemHeadersOf(words),
      content: { ...('content' in own ? (own.content as Json) : {}), ...content },
    };
  }
  return responses;
}

function problemHeadersOf(codes: readonly ProblemCode[]): Json {
  const headers: Record<string, Json> = {};
  if (codes.some((code) => PROBLEMS[code].retryAfterMs !== null)) {
    headers['Retry-After'] = {
      description: 'seconds to wait before a retry; present if `retryable` is true',
      schema: { type: 'integer', minimum: 0 },
    };
  }
  if (codes.includes('unauthorized')) {
    headers['WWW-Authenticate'] = { description: 'the challenge of RFC 6750', schema: { type: 'string' } };
  }
  return Object.keys(headers).length === 0 ? {} : { headers };
}

const exampleOf = (code: ProblemCode): object =>
  problemOf(code, code === 'bad_request' ? { errors: [EXAMPLE_FIELD] } : {});
const EXAMPLE_FIELD = { field: 'saleId', message: 'saleId must be a whole number.' };

/** Converts zod schemas to JSON Schema. Schemas with an id become components. */
class Schemas {
  readonly components: Record<string, Json> = {};

  of(schema: z.ZodType, io: 'input' | 'output'): Json {
    const made = z.toJSONSchema(schema, { io, target: 'draft-2020-12', unrepresentable: 'any', override: tidied(io) });
    const { $defs = {}, ...root } = withComponents(made as Json) as { readonly $defs?: Record<string, Json> } & Json;
    for (const [name, definition] of Object.entries($defs)) this.components[name] = without(definition, 'id');
    const { id } = root;
    const schemaAlone = without(root, 'id', '$schema');
    if (typeof id !== 'string') return schemaAlone;
    this.components[id] = schemaAlone;
    return { $ref: `#/components/schemas/${id}` };
  }
}

const without = (schema: Json, ...keys: string[]): Json =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.includes(key)));

/** Replaces local definitions with references to components. */
const withComponents = (schema: Json): Json =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')) as Json;

/** Changes a schema where the document must differ from zod: see `override` in the metadata of a schema. */
const tidied =
  (io: 'input' | 'output') =>
  ({ zodSchema, jsonSchema }: { readonly zodSchema: z.core.$ZodTypes; readonly jsonSchema: Json }): void => {
    if (jsonSchema.format === 'date-time') delete jsonSchema.pattern; // zod's pattern would fill a whole line
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties; // answers may gain fields
    const { override } = (z.globalRegistry.get(zodSchema) ?? {}) as { readonly override?: Json };
    if (override === undefined) return;
    for (const key of Object.keys(jsonSchema)) delete jsonSchema[key];
    Object.assign(jsonSchema, override);
  };
