import { expect } from 'chai';
import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { problemSchema, type ProblemCode } from '../../../src/contract/problem.js';
import type { Listener, Route } from '../../../src/http/route.js';
import { routesOf } from '../../../src/http/route.js';
import { ROUTES } from '../../../src/programs/routes.js';

/** Sentences about responses that are missing from the document of their route. */
const undeclared: string[] = [];

/** Codes of requests that reach no handler. The document lists each of them once for every operation. */
const OUTSIDE: ReadonlySet<string> = new Set(['method_not_allowed', 'bad_request', 'misdirected']);

/** Ports of the checked servers. Other tests of this process serve invented responses. */
const ports = new Map<number, Listener>();

/** Checks every response at this port against the document of its route. @returns a function that ends the check */
export function checkAnswersOf(port: number, listener: Listener): () => void {
  ports.set(port, listener);
  return () => ports.delete(port);
}

after('checks that the document of its route contains the status, code, fields and types of every response', () => {
  expect(undeclared).to.deep.equal([]);
});

subscribe('http.server.request.start', (message) => {
  const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
  const listener = ports.get(request.socket.localPort ?? 0);
  const route = listener === undefined ? undefined : routeOf(listener, request);
  if (route === undefined) return;
  const chunks: Buffer[] = [];
  const keep = (chunk: unknown, encoding: unknown): void => {
    if (typeof chunk === 'string') chunks.push(Buffer.from(chunk, encoding === 'latin1' ? 'latin1' : 'utf8'));
  };
  const { write, end } = response;
  response.write = function (this: ServerResponse, ...parts: unknown[]) {
    keep(parts[0], parts[1]);
    return Reflect.apply(write, this, parts);
  } as ServerResponse['write'];
  response.end = function (this: ServerResponse, ...parts: unknown[]) {
    keep(parts[0], parts[1]);
    if (request.method !== 'HEAD') check(route, response, Buffer.concat(chunks).toString());
    return Reflect.apply(end, this, parts);
  } as ServerResponse['end'];
});

function routeOf(listener: Listener, { method, url = '' }: IncomingMessage): Route | undefined {
  const path = url.split('?')[0] ?? '';
  return routesOf(ROUTES, listener).find(
    (route) =>
      (route.method.toUpperCase() === method || (route.method === 'get' && method === 'HEAD')) &&
      new RegExp(`^${route.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(path),
  );
}

function check(route: Route, response: ServerResponse, body: string): void {
  const wrong = (what: string): void => {
    const heading = `${route.method.toUpperCase()} ${route.path} answered ${response.statusCode}`;
    undeclared.push(`${heading}: ${what}: ${body.slice(0, 200)}`);
  };
  if (response.statusCode >= 400 && body.includes('"urn:seckill:problem:')) {
    const read = problemSchema.safeParse(JSON.parse(body));
    if (!read.success || !isDeepStrictEqual(read.data, JSON.parse(body))) return wrong('no problem as documented');
    const { code } = read.data;
    if (!route.codes.includes(code as ProblemCode) && !OUTSIDE.has(code)) wrong(`undeclared code ${code}`);
    return;
  }
  const answer = route.answers[response.statusCode];
  if (answer === undefined) return wrong('undeclared status');
  const isText =
    answer.type !== undefined && !String(response.getHeader('content-type')).startsWith('application/json');
  if (answer.schema === undefined || isText) {
    if (!isText && answer.type === undefined && body !== '') wrong('undeclared body');
    return;
  }
  const read = answer.schema.safeParse(JSON.parse(body));
  if (!read.success) return wrong(read.error.message);
  if (!isDeepStrictEqual(read.data, JSON.parse(body))) wrong('undeclared fields');
}
