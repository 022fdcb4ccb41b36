import { expect } from 'chai';
import { createApp } from '../../../src/http/app.js';
import { OPENAPI } from '../../../src/http/openapi/document.js';
import { PURCHASE_PATH } from '../../../src/http/purchase-request.js';
import { newLifecycle } from '../../../src/http/respond.js';
import { FakeServices } from './http-harness.js';

interface Layer {
  readonly route?: { readonly path: string; readonly methods: Record<string, boolean> };
}

describe('openapi', () => {
  it('when a route is mounted, then the document has it, and it has no other', () => {
    const app = createApp(new FakeServices().services, newLifecycle());
    const mounted = [`POST ${PURCHASE_PATH}`]; // served by the fast lane, which is no route of Express
    for (const { route } of app.router.stack as unknown as Layer[]) {
      if (!route || 'purge' in route.methods) continue; // the catch-all behind each address, which answers 405
      const path = route.path.replace(/:(\w+)/g, '{$1}');
      for (const method of Object.keys(route.methods)) mounted.push(`${method.toUpperCase()} ${path}`);
    }
    const documented = Object.entries(OPENAPI.paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(documented).to.have.members(mounted);
    expect(mounted).to.have.length.above(12);
  });

  it('when a schema is named, then it is there, and every parameter of a path is described', () => {
    const text = JSON.stringify(OPENAPI);
    for (const [, name = ''] of text.matchAll(/#\/components\/schemas\/(\w+)/g)) {
      expect(OPENAPI.components.schemas).to.have.property(name);
    }
    interface Operation {
      readonly parameters?: readonly { readonly name: string; readonly in: string }[];
    }
    for (const [path, methods] of Object.entries(OPENAPI.paths as Record<string, Record<string, Operation>>)) {
      for (const operation of Object.values(methods)) {
        const described = (operation.parameters ?? []).filter((each) => each.in === 'path').map(({ name }) => name);
        expect(described, path).to.have.members([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
      }
    }
  });
});
