/** `ImageEngine` with two implementations, Docker and buildah: builds images, measures layers, and runs restricted containers. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { run, works } from './run-program.js';

export interface BuildOptions {
  readonly file: string;
  readonly context: string;
  readonly image: string;
  readonly args: Readonly<Record<string, string>>;
}

export interface RunOptions {
  readonly image: string;
  /** Folder of this machine, mounted as the volume /data. Owned by `volumeOwner`. */
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  /** Arguments in place of the image's CMD. */
  readonly args: readonly string[];
}

interface Layer {
  readonly bytes: number;
  readonly step: string;
}

export interface RunningContainer {
  /** Exits with the container. */
  readonly child: ChildProcess;
  /** Sends a signal to the container's first process. With Docker, SIGKILL ends only the Docker client. */
  signal(name: 'SIGTERM' | 'SIGKILL'): void;
}

export interface ImageEngine {
  readonly name: string;
  /** Host user id to which the image's user is mapped in volumes. */
  readonly volumeOwner: number;
  build(options: BuildOptions): Promise<void>;
  /** Sizes of the parts of an image, base image included: the layers with Docker, some folders with buildah. */
  layers(image: string): Promise<readonly Layer[]>;
  /** Runs a container as the image's user: no capabilities, host network, read-only root except /data and /tmp. */
  start(options: RunOptions): Promise<RunningContainer>;
  /** Runs the image's health check beside a container started with the same options. Rejects if the check fails. */
  checkHealth(options: RunOptions): Promise<void>;
  close(): Promise<void>;
}

/** Docker if its engine answers, else buildah with bubblewrap. Throws an Error with installation advice. */
export async function findEngine(): Promise<Docker | Buildah> {
  if (await works('docker', ['info'])) return new Docker();
  if ((await works('buildah', ['--version'])) && (await works('bwrap', ['--version']))) return new Buildah();
  throw new Error(
    'No image builder found: start Docker, or install buildah and bubblewrap (apt-get install buildah bubblewrap mmdebstrap).',
  );
}

export class Docker implements ImageEngine {
  readonly name = 'docker';
  readonly volumeOwner = 65_532;
  readonly #containers = new Map<string, string>();

  async build({ file, context, image, args }: BuildOptions): Promise<void> {
    await run('docker', ['build', '--progress=plain', '-f', file, '-t', image, ...buildArgs(args), context], { isShown: true });
  }

  async layers(image: string): Promise<readonly Layer[]> {
    const { stdout } = await run('docker', ['history', '--no-trunc', '--human=false', '--format', '{{.Size}}\t{{.CreatedBy}}', image]);
    return stdout
      .trim()
      .split('\n')
      .reverse()
      .map((line) => {
        const [bytes = '', step = ''] = line.split('\t');
        return { bytes: Number(bytes), step };
      });
  }

  async start({ image, dataDir, env, args }: RunOptions): Promise<RunningContainer> {
    const name = `check-images-${process.pid}-${this.#containers.size}`;
    this.#containers.set(dataDir, name);
    const hardening = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--init'];
    const settings = Object.entries(env).flatMap(([key, value]) => ['-e', `${key}=${value}`]);
    const place = ['--network', 'host', '-v', `${dataDir}:/data`];
    const child = spawn('docker', ['run', '--rm', '--name', name, ...hardening, ...place, ...settings, image, ...args], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    // `docker run` forwards SIGTERM to the container.
    return { child, signal: (signal) => void child.kill(signal) };
  }

  async checkHealth({ image, dataDir }: RunOptions): Promise<void> {
    const { stdout } = await run('docker', ['image', 'inspect', '--format', '{{json .Config.Healthcheck.Test}}', image]);
    await run('docker', ['exec', this.#containers.get(dataDir) ?? '', ...healthCommand(JSON.parse(stdout))]);
  }

  async close(): Promise<void> {}
}

interface BuildahImage {
  readonly OCIv1: {
    readonly config: {
      readonly Env: readonly string[];
      readonly User: string;
      readonly Entrypoint: readonly string[];
      readonly WorkingDir: string;
    };
    readonly history: readonly { readonly created_by?: string; readonly empty_layer?: boolean }[];
    readonly rootfs: { readonly diff_ids: readonly string[] };
  };
  readonly Docker: { readonly config: { readonly Healthcheck?: { readonly Test: readonly string[] } } };
}

interface MountedImage {
  readonly container: string;
  readonly root: string;
  readonly image: BuildahImage;
}

/** Builds in a chroot, without a daemon, and runs the image with bubblewrap in separate namespaces. */
export class Buildah implements ImageEngine {
  readonly name = 'buildah';
  /** The calling user, whom the sandbox maps to the image's user. */
  readonly volumeOwner = process.getuid?.() ?? 0;
  readonly #mounted = new Map<string, MountedImage>();

  async build({ file, context, image, args }: BuildOptions): Promise<void> {
    // The docker format has HEALTHCHECK; the OCI format does not.
    const options = ['--isolation', 'chroot', '--network', 'host', '--format', 'docker', '--layers', '-f', file, '-t', image];
    await run('buildah', ['build', ...options, ...buildArgs(args), context], { isShown: true });
  }

  async layers(image: string): Promise<readonly Layer[]> {
    const { root } = await this.#mount(image);
    // `du` counts each file once, so a later folder excludes the folders before it.
    const parts = ['app/node_modules', 'app/console', 'app', 'usr/local/bin', '.'].filter((part) => existsSync(join(root, part)));
    const { stdout } = await run('du', ['-b', '-s', '-x', ...parts], { cwd: root });
    return stdout
      .trim()
      .split('\n')
      .map((line) => {
        const [bytes = '', part = ''] = line.split('\t');
        return { bytes: Number(bytes), step: part === '.' ? 'base image and libraries' : `/${part}` };
      });
  }

  async start({ image, dataDir, env, args }: RunOptions): Promise<RunningContainer> {
    const { config } = (await this.#mount(image)).image.OCIv1;
    const sandbox = await this.#sandbox(image, dataDir, env, [...config.Entrypoint, ...args]);
    const child = spawn('bwrap', ['--info-fd', '3', '--unshare-pid', '--as-pid-1', ...sandbox], {
      stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
    });
    // bubblewrap does not forward signals.
    const pid = await firstProcess(child);
    return { child, signal: (signal) => void process.kill(pid, signal) };
  }

  async checkHealth({ image, dataDir, env }: RunOptions): Promise<void> {
    const command = healthCommand((await this.#mount(image)).image.Docker.config.Healthcheck?.Test);
    await run('bwrap', await this.#sandbox(image, dataDir, env, command));
  }

  async close(): Promise<void> {
    for (const { container } of this.#mounted.values()) await run('buildah', ['rm', container]);
  }

  /** Arguments of bubblewrap: read-only image, only `env` and the image's environment, no capabilities, killed with this process. */
  async #sandbox(image: string, dataDir: string, env: Readonly<Record<string, string>>, command: readonly string[]): Promise<string[]> {
    const { root, image: inspected } = await this.#mount(image);
    const { Env, User, WorkingDir } = inspected.OCIv1.config;
    const [uid = '', gid = uid] = User.split(':');
    const entries = Env.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)] as const);
    const settings = [...entries, ...Object.entries(env)].flatMap(([name, value]) => ['--setenv', name, value]);
    const files = ['--ro-bind', root, '/', '--bind', dataDir, '/data', '--tmpfs', '/tmp', '--proc', '/proc', '--dev', '/dev'];
    const isolation = ['--unshare-user', '--unshare-ipc', '--cap-drop', 'ALL', '--uid', uid, '--gid', gid];
    return [...files, ...isolation, '--die-with-parent', '--clearenv', ...settings, '--chdir', WorkingDir, '--', ...command];
  }

  async #mount(image: string): Promise<MountedImage> {
    const known = this.#mounted.get(image);
    if (known !== undefined) return known;
    const container = (await run('buildah', ['from', '--pull-never', image])).stdout.trim();
    const root = (await run('buildah', ['mount', container])).stdout.trim();
    const inspected = JSON.parse((await run('buildah', ['inspect', '--type', 'image', image])).stdout) as BuildahImage;
    const mounted = { container, root, image: inspected };
    this.#mounted.set(image, mounted);
    return mounted;
  }
}

/** Process id of the program in bubblewrap's sandbox, from the JSON on file descriptor 3. */
async function firstProcess(child: ChildProcess): Promise<number> {
  const pipe = child.stdio[3];
  let text = '';
  if (pipe instanceof Readable) for await (const data of pipe) text += String(data);
  const pid = /"child-pid": (\d+)/.exec(text)?.[1];
  if (pid === undefined) throw new Error('bubblewrap did not start the container');
  return Number(pid);
}

function buildArgs(args: Readonly<Record<string, string>>): string[] {
  return Object.entries(args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]);
}

function healthCommand(test: readonly string[] | undefined): readonly string[] {
  const [kind, ...command] = test ?? [];
  if (kind !== 'CMD' || command.length === 0) throw new Error('the image has no HEALTHCHECK CMD in exec form');
  return command;
}
