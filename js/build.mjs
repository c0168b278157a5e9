// Bundles src/ into ../mixwidget/static/.
//
//   node build.mjs           build
//   node build.mjs --watch   build again on every change
//   node build.mjs --dev     build the development page into js/build/
//   node build.mjs --check   build elsewhere; fail unless the committed bundle is the same
//                            bytes and within the size budget
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const committed = join(here, "..", "mixwidget", "static");
const files = ["widget.js", "widget.css"];
const budget = 250_000; // bytes, both files together

const options = (outdir) => ({
  absWorkingDir: here,
  entryPoints: [
    { in: "src/index.ts", out: "widget" },
    { in: "src/style.css", out: "widget" },
  ],
  outdir,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  logLevel: "warning",
});

const sizeOf = (folder) =>
  files.reduce((total, name) => total + statSync(join(folder, name)).size, 0);

function withinBudget(folder) {
  const size = sizeOf(folder);
  console.log(`bundle: ${(size / 1000).toFixed(1)} kB of ${budget / 1000} kB`);
  if (size <= budget) return true;
  console.error("The bundle is over its size budget.");
  return false;
}

function sameBytes(left, right) {
  return existsSync(left) && existsSync(right) && readFileSync(left).equals(readFileSync(right));
}

async function check() {
  const fresh = mkdtempSync(join(tmpdir(), "mixwidget-bundle-"));
  try {
    await esbuild.build(options(fresh));
    const stale = files.filter((name) => !sameBytes(join(fresh, name), join(committed, name)));
    for (const name of stale) {
      console.error(`mixwidget/static/${name} is not what js/src builds to: run "make build-js".`);
    }
    return withinBudget(fresh) && stale.length === 0;
  } finally {
    rmSync(fresh, { recursive: true });
  }
}

async function watch() {
  const context = await esbuild.context({ ...options(committed), logLevel: "info" });
  await context.watch();
}

async function dev() {
  const outdir = join(here, "build");
  const entryPoints = [
    { in: "dev/main.ts", out: "main" },
    { in: "src/style.css", out: "main" },
  ];
  await esbuild.build({ ...options(outdir), entryPoints, minify: false });
  copyFileSync(join(here, "dev", "index.html"), join(outdir, "index.html"));
}

async function build() {
  await esbuild.build(options(committed));
  return withinBudget(committed);
}

const mode = process.argv[2];
if (mode === "--watch") await watch();
else if (mode === "--dev") await dev();
else if (!(await (mode === "--check" ? check() : build()))) process.exitCode = 1;
