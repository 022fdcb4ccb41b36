interface Closable {
  close(): Promise<void>;
}

type Worlds<World> = readonly (readonly [name: string, create: () => Promise<World>])[];
type Suite<World> = (world: World, name: string) => void;

/** Describes a suite once for each world, because double and real servers must pass the same tests. */
export function onEachWorld<World extends Closable>(title: string, worlds: Worlds<World>, suite: Suite<World>): void {
  for (const [name, create] of worlds) {
    describe(`${title} on ${name}`, () => {
      const { world, open, close } = lazily(create);
      before(open);
      suite(world, name);
      after(close);
    });
  }
}

/** Describes a suite once for each world, with a new world for each test. */
export function onEachFreshWorld<World extends Closable>(
  title: string,
  worlds: Worlds<World>,
  suite: Suite<World>,
): void {
  for (const [name, create] of worlds) {
    describe(`${title} on ${name}`, () => {
      const { world, open, close } = lazily(create);
      beforeEach(open);
      suite(world, name);
      afterEach(close);
    });
  }
}

/** Returns a world that exists while the tests of a suite run. */
export function useWorld<World extends Closable>(create: () => Promise<World>): World {
  const { world, open, close } = lazily(create);
  before(open);
  after(close);
  return world;
}

/** Returns a world whose members can be used after `open`. */
function lazily<World extends Closable>(create: () => Promise<World>) {
  let opened: World | undefined;
  const world = new Proxy({} as World, {
    get: (_, name) => {
      const value: unknown = Reflect.get(opened as World, name);
      return typeof value === 'function' ? value.bind(opened) : value;
    },
  });
  const open = async (): Promise<void> => void (opened = await create());
  return { world, open, close: () => opened?.close() };
}
