{ lib, buildNpmPackage, importNpmLock, nodejs_24, cmake, gnumake, makeWrapper }:

buildNpmPackage {
  pname = "mashbox";
  version = (lib.importJSON ../package.json).version;
  src = lib.cleanSource ../.;

  nodejs = nodejs_24;
  npmDeps = importNpmLock { npmRoot = ../.; };
  npmConfigHook = importNpmLock.npmConfigHook;
  # nixpkgs brings Node itself; the npm package `node` would fetch another one.
  npmFlags = [ "--ignore-scripts" ];

  nativeBuildInputs = [ cmake gnumake makeWrapper ];
  dontUseCmakeConfigure = true;

  buildPhase = ''
    runHook preBuild
    node scripts/setup.mjs --no-install
    runHook postBuild
  '';

  installPhase = ''
    runHook preInstall
    mkdir -p $out/lib/mashbox/build/native $out/bin
    cp -r dist models package.json $out/lib/mashbox/
    cp build/native/mashbox.node $out/lib/mashbox/build/native/
    makeWrapper ${nodejs_24}/bin/node $out/bin/mashbox --add-flags $out/lib/mashbox/dist/cli.js
    runHook postInstall
  '';

  meta = {
    description = "An LLM server for your own machine";
    license = lib.licenses.asl20;
    mainProgram = "mashbox";
    platforms = lib.platforms.linux;
  };
}
