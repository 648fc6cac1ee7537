# A stand-in for nixpkgs, just wide enough to evaluate this project's flake without a network.
{
  outputs = { self }:
    let
      lib = {
        genAttrs = names: f: builtins.listToAttrs (map (name: { inherit name; value = f name; }) names);
        importJSON = path: builtins.fromJSON (builtins.readFile path);
        cleanSource = path: path;
        licenses.asl20 = { };
        platforms.linux = [ "x86_64-linux" "aarch64-linux" ];
      };
      packagesFor = system:
        let
          fake = name: derivation { inherit name system; builder = "/bin/sh"; };
          importNpmLock = { __functor = self: { npmRoot }: fake "npm-deps"; npmConfigHook = fake "npm-config-hook"; };
          pkgs = {
            inherit lib importNpmLock system;
            nodejs_24 = fake "nodejs";
            cmake = fake "cmake";
            gnumake = fake "gnumake";
            gcc = fake "gcc";
            gdb = fake "gdb";
            python3 = fake "python3";
            makeWrapper = fake "make-wrapper";
            buildNpmPackage = attributes: fake "${attributes.pname}-${attributes.version}";
            mkShell = { packages }: fake "shell";
            runCommand = name: attributes: script: fake name;
            callPackage = path: overrides:
              let package = import path; in
              package (builtins.intersectAttrs (builtins.functionArgs package) pkgs // overrides);
          };
        in
        pkgs;
    in
    {
      inherit lib;
      legacyPackages = lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] packagesFor;
    };
}
